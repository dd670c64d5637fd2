// Command workload registers instances with Nacos's own client for Go, as a workload
// does: it has a connection to the server, with which its instances end.
//
//	workload PORT LOG-FOLDER
//
// Each line of its input is an [Order], as JSON. Each is answered by a line, "ok" or
// what went wrong. It ends with its input, and takes nothing back then.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/nacos-group/nacos-sdk-go/v2/clients"
	"github.com/nacos-group/nacos-sdk-go/v2/clients/naming_client"
	"github.com/nacos-group/nacos-sdk-go/v2/common/constant"
	"github.com/nacos-group/nacos-sdk-go/v2/vo"
)

// Order registers an instance, changes it, or takes it back.
type Order struct {
	Remove   bool
	Service  string
	Group    string
	Address  string
	Port     uint64
	Weight   float64
	Metadata map[string]string
}

func main() {
	if err := run(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(port, logs string) error {
	number, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return err
	}
	client, err := clients.NewNamingClient(vo.NacosClientParam{
		ClientConfig: constant.NewClientConfig(
			constant.WithNotLoadCacheAtStart(true), constant.WithLogDir(logs), constant.WithCacheDir(logs),
			constant.WithTimeoutMs(10_000), constant.WithLogLevel("warn"),
		),
		ServerConfigs: []constant.ServerConfig{*constant.NewServerConfig("127.0.0.1", number)},
	})
	if err != nil {
		return err
	}
	orders := bufio.NewScanner(os.Stdin)
	for orders.Scan() {
		answer := "ok"
		if err := carryOut(client, orders.Bytes()); err != nil {
			answer = fmt.Sprintf("%q", err)
		}
		fmt.Println(answer)
	}
	return orders.Err()
}

// carryOut does as an order says. Until the client is connected, and while the
// connection is lost, it tries again.
func carryOut(client naming_client.INamingClient, line []byte) error {
	var o Order
	if err := json.Unmarshal(line, &o); err != nil {
		return err
	}
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(100 * time.Millisecond) {
		done, err := o.send(client)
		if err == nil && done || time.Now().After(deadline) {
			return err
		}
	}
}

func (o Order) send(client naming_client.INamingClient) (bool, error) {
	if o.Remove {
		return client.DeregisterInstance(vo.DeregisterInstanceParam{
			ServiceName: o.Service, GroupName: o.Group, Ip: o.Address, Port: o.Port, Ephemeral: true,
		})
	}
	return client.RegisterInstance(vo.RegisterInstanceParam{
		ServiceName: o.Service, GroupName: o.Group, Ip: o.Address, Port: o.Port, Weight: o.Weight,
		Metadata: o.Metadata, Enable: true, Healthy: true, Ephemeral: true,
	})
}
