//go:build !purego && !noasm

#include "textflag.h"

// Vector instructions that the assembler has no names for. Operands are numbers
// of registers: d = d + n*m in words, d = n shifted left by m in half-words, d = n*m
// of the low half-words and of the high ones.
#define MLA4S(n, m, d) WORD $(0x4EA09400 | (m)<<16 | (n)<<5 | (d))
#define USHL8H(n, m, d) WORD $(0x6E604400 | (m)<<16 | (n)<<5 | (d))
#define UMULL(n, m, d) WORD $(0x2E60C000 | (m)<<16 | (n)<<5 | (d))
#define UMULL2(n, m, d) WORD $(0x6E60C000 | (m)<<16 | (n)<<5 | (d))

// What the functions keep, of the reader at R6 and the weight of the bottom row in
// R7: V15 and V14 are the shuffles, V13 the mask, V12 the shift (to the right, so
// negative), V11 the weight, V10 weightOne.
#define SETUP \
	VLD1.P 16(R6), [V15.B16]  \
	VLD1.P 16(R6), [V14.B16]  \
	VLD1R.P 4(R6), [V13.S4]   \
	MOVWU (R6), R6            \
	NEG R6, R6                \
	VDUP R6, V12.H8           \
	VDUP R7, V11.S4           \
	MOVD $2048, R6            \
	VDUP R6, V10.S4

// Four taps: places into R10 to R13, and into V1 the weights of both samples in the
// two halves of each word.
#define TAPS \
	MOVWU (R5), R10                \
	MOVWU 8(R5), R11               \
	MOVWU 16(R5), R12              \
	MOVWU 24(R5), R13              \
	VLD2.P 32(R5), [V0.S4, V1.S4]  \
	VSUB V1.S4, V10.S4, V0.S4      \
	VSHL $16, V1.S4, V1.S4         \
	VADD V0.S4, V1.S4, V1.S4

// Four bytes at each place from the row at P, into V. V20 to V23 are scratch.
#define LOAD(P, V) \
	FMOVS (P)(R10), F20              \
	FMOVS (P)(R11), F21              \
	FMOVS (P)(R12), F22              \
	FMOVS (P)(R13), F23              \
	VZIP1 V21.S4, V20.S4, V20.S4     \
	VZIP1 V23.S4, V22.S4, V22.S4     \
	VZIP1 V22.D2, V20.D2, V.D2

// The sum of a tap's two samples by their weights, from IN into OUT. V2 and V3 are
// scratch.
#define ACROSS(SHUFFLE, IN, OUT) \
	VTBL SHUFFLE.B16, [IN.B16], V2.B16   \
	USHL8H(2, 12, 2)                     \
	VAND V13.B16, V2.B16, V2.B16         \
	UMULL2(2, 1, 3)                      \
	UMULL(2, 1, 2)                       \
	VADDP V3.S4, V2.S4, OUT.S4

// The sum of the two rows by their weights, into OUT, whose number is N. BOTTOM's
// is M.
#define DOWN(TOP, BOTTOM, M, OUT, N) \
	VSUB TOP.S4, BOTTOM.S4, BOTTOM.S4   \
	VSHL $11, TOP.S4, OUT.S4            \
	MLA4S(M, 11, N)

// func gatherRow(dst *uint32, top, bottom *byte, taps *tap, n int, wy uint32, r *reader)
TEXT ·gatherRow(SB), NOSPLIT, $0-56
	MOVD dst+0(FP), R0
	MOVD top+8(FP), R1
	MOVD bottom+16(FP), R2
	MOVD taps+24(FP), R5
	MOVD n+32(FP), R8
	MOVWU wy+40(FP), R7
	MOVD r+48(FP), R6
	SETUP

luma:
	TAPS
	LOAD(R1, V4)
	LOAD(R2, V5)
	ACROSS(V15, V4, V6)
	ACROSS(V15, V5, V7)
	DOWN(V6, V7, 7, V16, 16)
	VST1.P [V16.S4], 16(R0)
	SUBS $4, R8, R8
	BGT luma
	RET

// func gatherPairRow(dst *uint64, utop, ubottom, vtop, vbottom *byte, taps *tap, n int, wy uint32, r *reader)
TEXT ·gatherPairRow(SB), NOSPLIT, $0-72
	MOVD dst+0(FP), R0
	MOVD utop+8(FP), R1
	MOVD ubottom+16(FP), R2
	MOVD vtop+24(FP), R3
	MOVD vbottom+32(FP), R4
	MOVD taps+40(FP), R5
	MOVD n+48(FP), R8
	MOVWU wy+56(FP), R7
	MOVD r+64(FP), R6
	SETUP

pair:
	TAPS
	LOAD(R1, V4)
	LOAD(R2, V5)
	LOAD(R3, V18)
	LOAD(R4, V19)
	ACROSS(V15, V4, V6)
	ACROSS(V15, V5, V7)
	ACROSS(V15, V18, V8)
	ACROSS(V15, V19, V9)
	DOWN(V6, V7, 7, V16, 16)
	DOWN(V8, V9, 9, V17, 17)
	VST2.P [V16.S4, V17.S4], 32(R0)
	SUBS $4, R8, R8
	BGT pair
	RET

// func gatherSharedRow(dst *uint64, top, bottom *byte, taps *tap, n int, wy uint32, r *reader)
TEXT ·gatherSharedRow(SB), NOSPLIT, $0-56
	MOVD dst+0(FP), R0
	MOVD top+8(FP), R1
	MOVD bottom+16(FP), R2
	MOVD taps+24(FP), R5
	MOVD n+32(FP), R8
	MOVWU wy+40(FP), R7
	MOVD r+48(FP), R6
	SETUP

shared:
	TAPS
	LOAD(R1, V4)
	LOAD(R2, V5)
	ACROSS(V15, V4, V6)
	ACROSS(V15, V5, V7)
	ACROSS(V14, V4, V8)
	ACROSS(V14, V5, V9)
	DOWN(V6, V7, 7, V16, 16)
	DOWN(V8, V9, 9, V17, 17)
	VST2.P [V16.S4, V17.S4], 32(R0)
	SUBS $4, R8, R8
	BGT shared
	RET
