// Package sampler draws indexes at random, each with probability proportional to its integer weight, from a table
// whose weights may change after every draw.
//
// It knows nothing of rewards, pools or logs, and imports nothing else of the project. No floating point, clock, map,
// goroutine or package state may enter it: what it returns must be the same on every run and every machine.
//
// # The contract: which index a draw returns
//
// Lay the entries' weights end to end from zero, in the order of the indexes: entry i covers the points from
// weight(0)+…+weight(i-1) up to, and without, weight(0)+…+weight(i). A draw takes a point uniformly distributed in
// [0, total) from the source and returns the entry that covers it. The point comes from [Source] by Lemire's
// multiply-shift with rejection, which is exact: with x the next 64-bit value, the point is the high half of the 128-bit
// product x·total, unless the low half is less than 2^64 mod total; then x is dropped and the next value is taken.
//
// Hence an index is a pure function of the current weights and of the values of the source. It does not depend on how
// the weights came about, on earlier draws, on the data structure in use, on the machine or on the build: two samplers
// with equal weights are interchangeable, one made by [New] from a snapshot of the weights continues exactly as the
// original would, and a verifier can replay draws with the ten lines that this section describes. A change made
// tentatively and then undone leaves no trace. The package may choose and switch data structures as it sees fit, and
// does, because no caller can tell.
//
// # How it works
//
// Three structures, all of unsigned integers:
//
//   - Blocks of 16 weights, as four groups of four running sums. A weight takes 16, 32 or 64 bits, whichever New found
//     that 15 of 16 blocks can do with; a block that outgrows this is moved, alone, to a place of 64-bit sums.
//   - A tree over the blocks with eight children a node: seven running sums, one cache line. At each level a search
//     compares all seven with the point and adds up the outcomes, without a branch that the processor could mispredict;
//     a change adds to those sums that lie behind the entry. It is the tree of P. Fenwick, "A New Data Structure for
//     Cumulative Frequency Tables", Software: Practice and Experience 24(3), 1994, widened from two to eight, so that a
//     million entries are five levels and a draw misses the cache about once.
//   - A guide over the blocks for weights at rest: [0, total) is cut into equal cells, up to four for each block and more
//     cells than blocks unless the total is smaller, and a cell knows which block or which two neighbouring blocks it
//     meets, so that most draws need no tree; the others take it. This is the indexed search of H.-C. Chen and Y. Asau,
//     "On Generating Random Variates from an Empirical Distribution", AIIE Transactions 6(2), 1974. A change makes the
//     guide useless. Once as many draws have gone by without another change as there is room for cells, it is made anew
//     beside the live tree, a few steps for each draw.
//
// The multiply-shift is algorithm 5 of D. Lemire, "Fast Random Integer Generation in an Interval", ACM Transactions on
// Modeling and Computer Simulation 29(1), 2019.
//
// # Costs
//
// With n entries: New is O(n). The tree has O(log n) levels, base 8, at most nine, five for a million entries. Once it
// has its point, a Draw is a descent with a fixed number of steps for each level, as At, Take and a Set are; Weight
// takes a fixed number of steps. While the guide serves, a Draw or an At whose cell knows its block does without the
// descent and takes a fixed number of steps, too: more than half of all points whatever the weights, nearly all where
// blocks are alike. From a change until the guide serves again, about five draws for each block of 16 entries later at
// most, every draw is a descent, and some do a few steps of making the guide besides. No operation does work that grows
// with n beyond that: there is no rebuild to wait for. Set and undo cost the same, whatever the pattern. Nothing is
// allocated after New, except that one Set in 64 of those that move a block to 64-bit sums allocates 8 KiB.
//
// State is 5.4 bytes for an entry of 16 bits, 7.4 for one of 32 and 11.1 for one of 64 at most, in large tables, and
// free of pointers but for one in 1024 entries, nil until blocks are moved; a moved block of 16 takes 128 bytes more.
package sampler
