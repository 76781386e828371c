//go:build !race

#include "textflag.h"

// func publish(word *atomic.Uint64, value uint64)
TEXT ·publish(SB), NOSPLIT, $0-16
	MOVQ word+0(FP), AX
	MOVQ value+8(FP), CX
	MOVQ CX, (AX)
	RET

// func raise(a, b *atomic.Uint64)
TEXT ·raise(SB), NOSPLIT, $0-16
	MOVQ a+0(FP), AX
	MOVQ b+8(FP), CX
	INCQ (AX)
	INCQ (CX)
	RET
