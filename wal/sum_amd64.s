#include "textflag.h"

// Below this many bytes, lanes take longer to put together than they save.
#define minLanes 96

// Four lanes of maxLane words.
#define maxLanes 4096

// func crcLanes(data []byte, shifts *[maxLane + 1][4]uint64) uint32
//
// SI data left, CX its length, AX the sum so far.
TEXT ·crcLanes(SB), NOSPLIT, $0-36
	MOVQ data_base+0(FP), SI
	MOVQ data_len+8(FP), CX
	MOVL $0xffffffff, AX

lanes:
	CMPQ CX, $minLanes
	JB   words
	MOVQ CX, R8
	CMPQ R8, $maxLanes
	JBE  split
	MOVQ $maxLanes, R8

split:
	// DX words in each lane, R10 bytes in each lane, R8 bytes in all four.
	MOVQ R8, DX
	SHRQ $5, DX
	LEAQ (DX*8), R10
	MOVQ DX, R8
	SHLQ $5, R8
	SUBQ R8, CX
	MOVQ shifts+24(FP), R9
	ADDQ R8, R9               // 32 bytes for each number of words
	LEAQ (SI)(R10*1), R11
	XORL BX, BX
	XORL R12, R12
	XORL R13, R13

word4:
	CRC32Q (SI), AX
	CRC32Q (SI)(R10*1), BX
	CRC32Q (SI)(R10*2), R12
	CRC32Q (R11)(R10*2), R13
	ADDQ   $8, SI
	ADDQ   $8, R11
	DECQ   DX
	JNZ    word4

	// The last lane's sum, and the others' times their powers of x.
	MOVQ      AX, X0
	MOVQ      BX, X1
	MOVQ      R12, X2
	MOVQ      0(R9), X3
	MOVQ      8(R9), X4
	MOVQ      16(R9), X5
	PCLMULQDQ $0, X3, X0
	PCLMULQDQ $0, X4, X1
	PCLMULQDQ $0, X5, X2
	PXOR      X1, X0
	PXOR      X2, X0
	MOVQ      X0, BX
	XORL      AX, AX
	CRC32Q    BX, AX
	XORL      R13, AX
	LEAQ      (R11)(R10*2), SI
	JMP       lanes

words:
	SUBQ $8, CX
	JB   rest

word:
	CRC32Q (SI), AX
	ADDQ   $8, SI
	SUBQ   $8, CX
	JAE    word

rest:
	// CX is the number of bytes left, less 8: its low bits are the same.
	TESTB $4, CX
	JZ    two
	CRC32L (SI), AX
	ADDQ   $4, SI

two:
	TESTB $2, CX
	JZ    one
	CRC32W (SI), AX
	ADDQ   $2, SI

one:
	TESTB $1, CX
	JZ    done
	CRC32B (SI), AX

done:
	NOTL AX
	MOVL AX, ret+32(FP)
	RET
