package secretfile_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/isthmus-mesh/isthmus/internal/secretfile"
)

// makeSecret makes folders and a file with a secret in the last of them. The modes are of the file and of each folder.
func makeSecret(t *testing.T, mode fs.FileMode, folders ...fs.FileMode) (path string) {
	t.Helper()
	path = t.TempDir()
	for _, folder := range folders {
		path = filepath.Join(path, "folder")
		if err := os.Mkdir(path, 0o700); err != nil {
			t.Fatal(err)
		}
		chmod(t, path, folder)
	}
	path = filepath.Join(path, "secret")
	if err := os.WriteFile(path, []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	chmod(t, path, mode)
	return path
}

func chmod(t *testing.T, path string, mode fs.FileMode) {
	t.Helper()
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
}

// linked makes a link to a path in a folder for its owner alone.
func linked(t *testing.T, to string) string {
	t.Helper()
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(to, link); err != nil {
		t.Fatal(err)
	}
	return link
}

// mounted makes a secret as Kubernetes mounts it.
func mounted(t *testing.T, mode fs.FileMode) string {
	t.Helper()
	dir := filepath.Dir(makeSecret(t, 0o600, fs.ModeSticky|0o777))
	version := filepath.Join(dir, "..2026_11_30")
	if err := os.Mkdir(version, 0o755); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(version, "tls.key")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	chmod(t, file, mode)
	for link, to := range map[string]string{"..data": "..2026_11_30", "tls.key": "..data/tls.key"} {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, "tls.key")
}

func TestOthersWhoCanReadOrReplaceASecretAreFound(t *testing.T) {
	t.Parallel()
	circle := filepath.Join(t.TempDir(), "a")
	if err := os.Symlink("a", circle); err != nil {
		t.Fatal(err)
	}
	const access, change, replace = "other users have access to ", "other users can change ", "other users can replace the files of "
	for name, test := range map[string]struct {
		path        string
		want        string
		replaceable bool
	}{
		"for its owner alone":            {makeSecret(t, 0o600), "", false},
		"read by the owner's own group":  {makeSecret(t, 0o640), "", false},
		"read by all":                    {makeSecret(t, 0o644), access, false},
		"read by all in a closed folder": {makeSecret(t, 0o604, 0o700), access, false},
		"written by all":                 {makeSecret(t, 0o602), change, true},
		"in a folder written by all":     {makeSecret(t, 0o600, 0o777), replace, true},
		"below a folder written by all":  {makeSecret(t, 0o600, 0o777, 0o700), replace, true},
		"in a sticky folder":             {makeSecret(t, 0o600, fs.ModeSticky|0o777), "", false},
		"a link":                         {linked(t, makeSecret(t, 0o600)), "", false},
		"a link to a file read by all":   {linked(t, makeSecret(t, 0o644)), access, false},
		"a link into a folder of all":    {linked(t, makeSecret(t, 0o600, 0o777)), replace, true},
		"a link by way of such a folder": {linked(t, filepath.Dir(makeSecret(t, 0o600, 0o777))+"/../none"), replace, true},
		"mounted by Kubernetes":          {mounted(t, 0o644), "", false},
		"mounted and written by all":     {mounted(t, 0o646), change, true},
		"a circle of links":              {circle, "", false},
		"missing":                        {filepath.Join(t.TempDir(), "none"), "", false},
		"missing in a folder of all":     {filepath.Join(filepath.Dir(makeSecret(t, 0o600, 0o777)), "none"), replace, true},
		"a pipe":                         {"/dev/stdin", "", false},
	} {
		got := strings.Join(secretfile.Warnings(test.path), "\n")
		if test.want == "" && got != "" || !strings.HasPrefix(got, test.want) || test.want != "" && !strings.Contains(got, ": chmod ") {
			t.Errorf("%s: %q; want %q", name, got, test.want)
		}
		if got := secretfile.Replaceable(test.path); (got != "") != test.replaceable {
			t.Errorf("%s: can be replaced: %q; want %v", name, got, test.replaceable)
		}
	}
}

func TestOneCauseIsOneWarning(t *testing.T) {
	t.Parallel()
	one := makeSecret(t, 0o644, 0o777)
	other := filepath.Join(filepath.Dir(one), "other")
	if got := secretfile.Warnings("", one, other, one); len(got) != 1 || !strings.Contains(got[0], filepath.Dir(one)) {
		t.Errorf("%q", got)
	}
}

// Only root can give files to other users.
func TestFilesOfOtherUsersAreFound(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	const other = 54321
	give := func(path string, uid, gid int) string {
		t.Helper()
		if err := os.Lchown(path, uid, gid); err != nil {
			t.Fatal(err)
		}
		return path
	}
	inFolder := makeSecret(t, 0o600, 0o700)
	give(filepath.Dir(inFolder), other, 0)
	for name, test := range map[string]struct{ path, want string }{
		"file":                         {give(makeSecret(t, 0o600), other, 0), "belongs to another user (uid 54321)"},
		"folder":                       {inFolder, "belongs to another user"},
		"link":                         {give(linked(t, makeSecret(t, 0o600)), other, 0), "belongs to another user"},
		"read by a group root chose":   {give(makeSecret(t, 0o640), 0, other), ""},
		"written by a group":           {give(makeSecret(t, 0o660), 0, other), "other users can change"},
		"in a folder of another group": {filepath.Join(give(filepath.Dir(makeSecret(t, 0o600, 0o770)), 0, other), "secret"), "other users can replace"},
	} {
		if got := strings.Join(secretfile.Warnings(test.path), "\n"); !strings.Contains(got, test.want) || test.want == "" && got != "" {
			t.Errorf("%s: %q; want %q", name, got, test.want)
		}
	}

	away := t.TempDir()
	link := give(linked(t, away), other, 0)
	if err := secretfile.Write(filepath.Join(link, "token"), []byte("text")); err == nil || !strings.Contains(err.Error(), "the link "+link+" belongs to another user") {
		t.Errorf("written through the link of another user: %v", err)
	}
	if found, _ := os.ReadDir(away); len(found) != 0 {
		t.Errorf("behind the link are %v", found)
	}
}

func TestASecretIsWrittenForItsOwnerAlone(t *testing.T) {
	t.Parallel()
	path := makeSecret(t, 0o644)
	dir := filepath.Dir(path)
	if err := secretfile.Write(filepath.Join(linked(t, dir), "secret"), []byte("new")); err != nil {
		t.Fatal(err)
	}
	info, err := os.Lstat(path)
	if err != nil || info.Mode() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if text, _ := os.ReadFile(path); string(text) != "new" {
		t.Errorf("it has %q", text)
	}
	if found, _ := os.ReadDir(dir); len(found) != 1 {
		t.Errorf("the folder has %v", found)
	}
}

func TestNothingButAFileIsReplacedByASecret(t *testing.T) {
	t.Parallel()
	old := makeSecret(t, 0o600)
	for name, test := range map[string]struct{ path, want string }{
		"link":          {linked(t, old), "is not a regular file, and stays"},
		"folder":        {t.TempDir(), "is not a regular file, and stays"},
		"no folder":     {filepath.Join(t.TempDir(), "none", "token"), "create the folder"},
		"below a file":  {filepath.Join(old, "token"), "create the folder"},
		"a circle link": {filepath.Join(linked(t, "link"), "token"), "create the folder"},
	} {
		before, _ := os.Lstat(test.path)
		if err := secretfile.Write(test.path, []byte("new")); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v; want %q", name, err, test.want)
		}
		if after, _ := os.Lstat(test.path); before != nil && !os.SameFile(before, after) {
			t.Errorf("%s was replaced", name)
		}
	}
	if text, _ := os.ReadFile(old); string(text) != "text" {
		t.Errorf("the old secret is %q", text)
	}
}
