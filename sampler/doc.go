// Package sampler draws indexes at random, each with probability proportional
// to its integer weight. The weights may change after every draw.
//
// It knows nothing of rewards, pools or logs, and imports nothing else of the
// project. No floating point, clock, map, goroutine or package state may enter
// it: it must return the same on every run and every machine.
//
// # The contract: which index a draw returns
//
// Lay the entries' weights end to end from zero, in the order of the indexes.
// Entry i then covers the points from weight(0)+…+weight(i-1) up to, but not
// including, weight(0)+…+weight(i). A draw takes a point uniformly distributed
// in [0, total) from the source and returns the entry that covers it.
//
// The point comes from [Source] by Lemire's multiply-shift with rejection, which is exact. Let x be
// the next 64-bit value. The point is the high half of the 128-bit product x·total, unless the low
// half is less than 2^64 mod total. Then x is dropped and the next value is taken.
//
// So an index is a pure function of the current weights and of the values of
// the source. It does not depend on how the weights came about, on earlier
// draws, on the data structure, on the machine or on the build:
//
//   - Two samplers with equal weights are interchangeable. One that [New] makes
//     from a copy of the weights continues exactly as the original would.
//   - A verifier can replay draws with the ten lines that this section
//     describes.
//   - A change that is made and then undone leaves no trace.
//
// The package may choose and switch data structures as it likes, and does,
// because no caller can tell.
//
// # How it works
//
// There are three structures, all of unsigned integers:
//
//   - Blocks of 16 weights, as four groups of four running sums. A weight takes
//     16, 32 or 64 bits, whichever New found enough for 15 of 16 blocks. A
//     block that outgrows this moves, alone, to a place of 64-bit sums.
//   - A tree over the blocks with eight children for each node: seven running
//     sums in one cache line. At each level a search compares all seven with
//     the point and adds up the results, without a branch that the processor
//     could mispredict. A change adds to the sums after the entry. It is the
//     tree of P. Fenwick, "A New Data Structure for Cumulative Frequency
//     Tables", Software: Practice and Experience 24(3), 1994, widened from two
//     to eight. So a million entries are five levels, and a draw misses the
//     cache about once.
//   - A guide over the blocks for weights at rest. It cuts [0, total) into
//     equal cells: up to four for each block, and more cells than blocks unless
//     the total is smaller. A cell knows which block, or which two neighbouring
//     blocks, it meets. So most draws need no tree. This is the indexed search
//     of H.-C. Chen and Y. Asau, "On Generating Random Variates from an
//     Empirical Distribution", AIIE Transactions 6(2), 1974. A change makes the
//     guide useless. Once as many draws have gone by without a change as there
//     is room for cells, the guide is made again next to the live tree, a few
//     steps for each draw.
//
// The multiply-shift is algorithm 5 of D. Lemire, "Fast Random Integer Generation in an Interval",
// ACM Transactions on Modeling and Computer Simulation 29(1), 2019.
//
// # Costs
//
// With n entries, New is O(n). Draw, At, Take and Set take a fixed number of steps for each of the tree's
// O(log n) levels: five for a million entries, at most nine. While the guide serves, more than half of all
// Draws need none of them, and nearly all where blocks are alike. It serves again after at most about five
// draws for each block since the last change. There is no rebuild to wait for, and Set and its undoing
// cost the same.
//
// Nothing is allocated after New, except that one in 64 of the Sets that move a block to 64-bit sums
// allocates 8 KiB. In large tables an entry of 16 bits takes 5.4 bytes, one of 32 bits 7.4, and one of 64
// bits 11.1 at most. A moved block of 16 takes 128 bytes more.
package sampler
