// Package secretfile judges the files that have secrets, by their owner, mode, folders and
// links: whether another user can read or replace them. It also writes such a file.
//
// Trusted are root, the user of this process, the group of root, and the group with the
// number of that user, which is usually his alone. Others are:
//
//   - other owners, of the file or of anything that leads to it;
//   - other writers of the file;
//   - other writers of a folder on the way without the sticky bit, for they can put another
//     file there. Each link is followed, and its folders are judged likewise;
//   - other readers of the file. A file of root may be read by its group, for root chose the
//     group. Files that Kubernetes mounts, by its link ..data of root, may be read by all:
//     who enters the pod decides.
//
// It knows modes of Unix alone, and nothing of access control lists. Elsewhere nothing is
// reported. Files are looked at once for each call, and nothing is kept.
package secretfile
