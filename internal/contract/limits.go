package contract

// Limits that several rooms of the server share. Package server exports them.
const (
	// MaxPage is the most entries or items in one answer.
	MaxPage = 10_000
	// DefaultPage is the number of entries or items in an answer if the request does not give one.
	DefaultPage = 1000
	// MaxBatchOutcomes is the most outcomes of all draws in one Batch, or in one batch of a stream.
	MaxBatchOutcomes = 100_000
)
