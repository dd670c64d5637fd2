//go:build unix

package secretfile

import (
	"io/fs"
	"syscall"
)

func owner(info fs.FileInfo) (uid, gid uint32, known bool) {
	stat, known := info.Sys().(*syscall.Stat_t)
	if !known {
		return 0, 0, false
	}
	return stat.Uid, stat.Gid, true
}
