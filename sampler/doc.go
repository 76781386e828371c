// Package sampler draws indexes at random, each with probability proportional to its integer weight.
// The weights may change after every draw.
//
// It knows nothing of rewards, pools or logs, and imports nothing else of the project. No floating
// point, clock, map, goroutine or package state may enter it: it returns the same on every run and
// every machine.
//
// # The contract: which index a draw returns
//
// Lay the weights end to end from zero, in the order of the indexes. Entry i then covers the points
// from weight(0)+…+weight(i-1) up to, but not including, weight(0)+…+weight(i). A draw takes a point
// uniformly distributed in [0, total) from the source and returns the entry that covers it.
//
// The point comes from [Source] by Lemire's multiply-shift with rejection, which is exact. Let x be
// the next 64-bit value. The point is the high half of the 128-bit product x·total, unless the low
// half is less than 2^64 mod total. Then x is dropped and the next value is taken.
//
// The index depends only on the current weights and the values of the source: not on the history of
// the weights, on earlier draws, the data structure, the machine or the build. Samplers with equal
// weights are interchangeable, a change that is undone leaves no trace, and a verifier can repeat
// draws with ten lines of code.
//
// # How it works
//
// There are three structures, all of unsigned integers:
//
//   - Blocks of 16 weights, as four groups of four running sums. A weight takes 16, 32 or 64 bits,
//     whichever New finds enough for 15 of 16 blocks. A block that outgrows this moves, alone, to
//     64-bit sums elsewhere.
//   - A tree over the blocks with eight children a node: seven running sums in one cache line. A
//     search compares all seven with the point and adds up the results, without a branch that the
//     processor could mispredict. A change adds to the sums after the entry. It is the tree of
//     P. Fenwick, "A New Data Structure for Cumulative Frequency Tables", Software: Practice and
//     Experience 24(3), 1994, widened from two children to eight. A million entries are five levels,
//     and a draw misses the cache about once.
//   - A guide over the blocks for weights at rest. It cuts [0, total) into equal cells: up to four a
//     block, and more cells than blocks unless the total is smaller. A cell knows which block, or
//     which two neighbouring blocks, it meets, so most draws need no tree. This is the indexed search
//     of H.-C. Chen and Y. Asau, "On Generating Random Variates from an Empirical Distribution", AIIE
//     Transactions 6(2), 1974. A change makes the guide useless. After as many draws without a change
//     as there is room for cells, it is made again, a few steps a draw.
//
// The multiply-shift is algorithm 5 of D. Lemire, "Fast Random Integer Generation in an Interval",
// ACM Transactions on Modeling and Computer Simulation 29(1), 2019.
//
// # Costs
//
// With n entries, New is O(n). Draw, At, Take and Set take a fixed number of steps for each of the
// tree's O(log n) levels: five for a million entries, at most nine. While the guide serves, more than
// half of all Draws need no level at all, and nearly all if the blocks are alike. It serves again
// after at most about five draws a block since the last change. No call waits for a rebuild.
//
// After New nothing is allocated, except 8 KiB by one in 64 of the Sets that move a block to 64-bit
// sums. In large tables an entry of 16 bits takes 5.4 bytes, one of 32 bits 7.4, and one of 64 bits
// 11.1 at most. A moved block of 16 takes 128 bytes more.
package sampler
