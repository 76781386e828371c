// Package powercut gives tests a real ext4 and a real XFS whose power they can
// cut. The disk is an image file on a loop device. The kernel's ioctl shuts it
// down by force and drops all dirty pages and, if asked to, the journal that
// has not reached the disk.
//
// The package needs Linux, root, and mkfs.ext4 or mkfs.xfs. It is off unless
// the environment sets [Env]. It cannot show a disk that loses writes from a
// cache of its own: the loop device keeps what reached it.
//
// Only tests import it, and it imports nothing of the project.
package powercut

// Env is the environment variable that turns these tests on: the number of
// power cuts that each of them makes on each file system.
const Env = "KUJI_POWERCUTS"
