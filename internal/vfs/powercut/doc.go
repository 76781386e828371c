// Package powercut gives tests a real ext4, XFS and btrfs whose power they can
// cut. The disk is an image file on a loop device. The kernel's ioctl shuts it
// down by force and drops all dirty pages and, if asked to, the journal that
// has not reached the disk.
//
// A btrfs cannot be shut down in this way, so its image is a file on an ext4 that can. Then nothing
// more reaches the image, and what no flush has followed may be lost as well, as on a device with a
// cache. The other two have no such device: their loop device keeps what reached it.
//
// The package needs Linux, root, and mkfs.ext4, mkfs.xfs or mkfs.btrfs. It is off
// unless the environment sets [Env].
//
// Only tests import it, and it imports nothing of the project.
package powercut

// Env is the environment variable that turns these tests on: the number of
// power cuts that each of them makes on each file system.
const Env = "KUJI_POWERCUTS"
