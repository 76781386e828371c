package wal

import (
	"hash/crc32"

	"golang.org/x/sys/cpu"
)

// crcOf is the CRC32C of data, as hash/crc32 computes it.
//
// For a record of some hundred bytes hash/crc32 mostly waits: each step of 8
// bytes needs the one before, which takes three cycles. So crcLanes divides the
// data into four lanes that do not wait for each other. Then it joins their
// sums: the CRC of data with n bytes behind it is its own CRC times x^(8n)
// modulo the polynomial, plus what those bytes add. Source: V. Gopal et al.,
// "Fast CRC Computation for iSCSI Polynomial Using CRC32 Instruction", Intel,
// 2011.
func crcOf(data []byte) uint32 {
	if !hasLanes {
		return crc32.Update(0, castagnoli, data)
	}
	return crcLanes(data, &laneShifts)
}

// crcLanes is crcOf on a processor with SSE4.2 and PCLMULQDQ.
//
//go:noescape
func crcLanes(data []byte, shifts *[maxLane + 1][4]uint64) uint32

var hasLanes = cpu.X86.HasSSE42 && cpu.X86.HasPCLMULQDQ

// maxLane is the most words of 8 bytes that crcLanes gives to a lane.
const maxLane = 128

// laneShifts holds, for lanes of each number of words, the factors for the sums
// of the first three lanes. The fourth number of each is not used. It is
// written once.
var laneShifts = makeLaneShifts()

func makeLaneShifts() (shifts [maxLane + 1][4]uint64) {
	// Numbers are reflected: x^0 is the highest bit. The carry-less product of
	// two of 32 bits then stands one bit too low, and CRC32Q, which reduces it,
	// multiplies it by x^32. So the factors are too small by both.
	const surplus = 1 + 32
	powers := make([]uint32, 3*64*maxLane)
	power := uint32(1) << 31
	for i := range powers {
		powers[i] = power
		power = power>>1 ^ -(power&1)&crc32.Castagnoli
	}
	for words := 1; words <= maxLane; words++ {
		for lane := range 3 {
			shifts[words][lane] = uint64(powers[(3-lane)*64*words-surplus])
		}
	}
	return shifts
}
