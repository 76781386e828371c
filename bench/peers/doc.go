// Package peers measures Kuji's packages against others that do the same work:
// wal against five write-ahead logs, sampler against a weighted chooser, and
// concurrent maps that reads of players will have to be compared with. It is a
// module of its own, so that the rivals stay out of Kuji's go.mod, and holds
// tests and benchmarks only. Nothing imports it.
//
// How each rival is set up, what it promises then and how to read the results
// is told in README.md.
package peers
