package secretfile

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// Warnings returns a warning for each cause by which other users can read or replace
// secrets, with the command that ends it. Empty paths are left out.
func Warnings(paths ...string) (list []string) {
	for _, path := range paths {
		if path == "" {
			continue
		}
		if reason := exposed(path); reason != "" && !slices.Contains(list, reason) {
			list = append(list, reason)
		}
	}
	return list
}

// Replaceable returns how another user can have put a secret in its place, with the command
// that ends it; empty if none can.
func Replaceable(path string) string {
	for at, info := range parts(path) {
		if reason := replaceable(at, info); reason != "" {
			return reason
		}
	}
	return ""
}

// exposed returns how another user can replace or read a secret; empty if none can.
func exposed(path string) string {
	mounted, end := false, ""
	var last fs.FileInfo
	for at, info := range parts(path) {
		if reason := replaceable(at, info); reason != "" {
			return reason
		}
		mounted = mounted || isLink(info) && filepath.Base(at) == "..data"
		end, last = at, info
	}
	if last == nil || !last.Mode().IsRegular() || mounted {
		return ""
	}
	uid, gid, known := owner(last)
	others, group := last.Mode().Perm()&0o004 != 0, last.Mode().Perm()&0o040 != 0
	if known && (others || group && uid != 0 && !trusted(gid)) {
		return fmt.Sprintf("other users have access to %s (mode %04o): chmod 600 %[1]s", end, last.Mode().Perm())
	}
	return ""
}

// replaceable returns how another user can change one part of the way to a secret.
func replaceable(at string, info fs.FileInfo) string {
	uid, gid, known := owner(info)
	mode := info.Mode()
	others := mode.Perm()&0o002 != 0 || mode.Perm()&0o020 != 0 && !trusted(gid)
	switch {
	case !known:
		return ""
	case !trusted(uid):
		return fmt.Sprintf("%s belongs to another user (uid %d), who can replace the secret: give it to root or to uid %d, or keep the secret elsewhere", at, uid, os.Geteuid())
	case mode.IsDir() && others && mode&fs.ModeSticky == 0:
		return fmt.Sprintf("other users can replace the files of %s (mode %04o): chmod go-w %[1]s", at, mode.Perm())
	case mode.IsRegular() && others:
		return fmt.Sprintf("other users can change %s (mode %04o): chmod 600 %[1]s", at, mode.Perm())
	default:
		return ""
	}
}

// trusted reports whether a user or a group is that of root or of this process.
func trusted(id uint32) bool { return id == 0 || int(id) == os.Geteuid() }

func isLink(info fs.FileInfo) bool { return info.Mode()&fs.ModeSymlink != 0 }
