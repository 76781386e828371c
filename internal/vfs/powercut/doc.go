// Package powercut gives tests a real ext4 and a real XFS whose power they can
// cut: an image file on a loop device, shut down by force through the kernel's
// ioctl for it, which drops all dirty pages and, if asked to, the journal that has
// not reached the disk.
//
// It needs Linux, root, and mkfs.ext4 or mkfs.xfs, and is off unless the
// environment sets [Env]. What it cannot show is a disk that loses writes from a cache of its
// own: the loop device keeps what reached it.
//
// Only tests import it, and it imports nothing of the project.
package powercut

// Env is the environment variable that turns these tests on: the number of
// power cuts that each of them makes on each file system.
const Env = "KUJI_POWERCUTS"
