package process

import "syscall"

// attributes are those of a process that ends when this one is gone, however that came about.
func attributes(as *User) *syscall.SysProcAttr {
	a := &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if as != nil {
		a.Credential = &syscall.Credential{Uid: as.ID, Gid: as.ID}
		a.AmbientCaps = as.Capabilities
	}
	return a
}
