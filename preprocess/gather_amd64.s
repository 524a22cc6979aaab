//go:build !purego && !noasm

#include "textflag.h"

// Offsets in reader.
#define FIRST 0
#define SECOND 16
#define MASK 32
#define SHIFT 36

// What the functions keep: Y15 and Y14 are the shuffles, Y13 the mask, X12 the
// shift, Y11 the weight of the bottom row, Y10 weightOne.
#define CONSTANTS(WY) \
	VBROADCASTI128 FIRST(SI), Y15   \
	VBROADCASTI128 SECOND(SI), Y14  \
	VPBROADCASTD MASK(SI), Y13      \
	VMOVD SHIFT(SI), X12            \
	VPBROADCASTD WY, Y11            \
	MOVL $2048, DX                  \
	VMOVD DX, X10                   \
	VPBROADCASTD X10, Y10

// Into Y1 the weights of eight taps, those of both samples in the two words of
// each. Lanes hold taps 0 1 4 5 and 2 3 6 7.
#define WEIGHTS \
	VMOVDQU (BX), Y2             \
	VSHUFPS $0xDD, 32(BX), Y2, Y2 \
	VPSLLD $16, Y2, Y1           \
	VPSUBD Y2, Y1, Y1            \
	VPADDD Y10, Y1, Y1

// Four bytes at the place of tap AT/8 from the rows at P and Q, into a lane of V
// and W: the first of four and the others.
#define LOADFIRST(AT, P, V, Q, W) \
	MOVL AT(BX), AX          \
	VMOVD (P)(AX*1), V       \
	VMOVD (Q)(AX*1), W
#define LOADNEXT(AT, LANE, P, V, Q, W) \
	MOVL AT(BX), AX                \
	VPINSRD $LANE, (P)(AX*1), V, V \
	VPINSRD $LANE, (Q)(AX*1), W, W

// Eight taps from the rows at P and Q into YV and YW, whose low halves are XV and
// XW. On processors of AMD this takes half as long as VPGATHERDD, which the cure for
// CVE-2022-40982 made slow on many of Intel's.
#define LOAD(P, YV, XV, Q, YW, XW) \
	LOADFIRST(0, P, XV, Q, XW)    \
	LOADNEXT(8, 1, P, XV, Q, XW)  \
	LOADNEXT(32, 2, P, XV, Q, XW) \
	LOADNEXT(40, 3, P, XV, Q, XW) \
	LOADFIRST(16, P, X8, Q, X9)   \
	LOADNEXT(24, 1, P, X8, Q, X9) \
	LOADNEXT(48, 2, P, X8, Q, X9) \
	LOADNEXT(56, 3, P, X8, Q, X9) \
	VINSERTI128 $1, X8, YV, YV    \
	VINSERTI128 $1, X9, YW, YW

// The sum of a tap's two samples by their weights.
#define ACROSS(SHUFFLE, V, OUT) \
	VPSHUFB SHUFFLE, V, OUT      \
	VPSRLW X12, OUT, OUT         \
	VPAND Y13, OUT, OUT          \
	VPMADDWD Y1, OUT, OUT

// The sum of the two rows by their weights, into TOP.
#define DOWN(TOP, BOTTOM) \
	VPSUBD TOP, BOTTOM, BOTTOM    \
	VPMULLD Y11, BOTTOM, BOTTOM   \
	VPSLLD $11, TOP, TOP          \
	VPADDD BOTTOM, TOP, TOP

// Cb in U and Cr in V become eight pairs.
#define STOREPAIRS(U, V) \
	VPUNPCKLDQ V, U, Y9       \
	VPUNPCKHDQ V, U, U        \
	VMOVDQU Y9, (DI)          \
	VMOVDQU U, 32(DI)

// func gatherRow(dst *uint32, top, bottom *byte, taps *tap, n int, wy uint32, r *reader)
TEXT ·gatherRow(SB), NOSPLIT, $0-56
	MOVQ dst+0(FP), DI
	MOVQ top+8(FP), R8
	MOVQ bottom+16(FP), R9
	MOVQ taps+24(FP), BX
	MOVQ n+32(FP), CX
	MOVQ r+48(FP), SI
	CONSTANTS(wy+40(FP))

luma:
	WEIGHTS
	LOAD(R8, Y4, X4, R9, Y5, X5)
	ACROSS(Y15, Y4, Y4)
	ACROSS(Y15, Y5, Y5)
	DOWN(Y4, Y5)
	VPERMQ $0xD8, Y4, Y4
	VMOVDQU Y4, (DI)
	ADDQ $32, DI
	ADDQ $64, BX
	SUBQ $8, CX
	JGT luma
	VZEROUPPER
	RET

// func gatherPairRow(dst *uint64, utop, ubottom, vtop, vbottom *byte, taps *tap, n int, wy uint32, r *reader)
TEXT ·gatherPairRow(SB), NOSPLIT, $0-72
	MOVQ dst+0(FP), DI
	MOVQ utop+8(FP), R8
	MOVQ ubottom+16(FP), R9
	MOVQ vtop+24(FP), R10
	MOVQ vbottom+32(FP), R11
	MOVQ taps+40(FP), BX
	MOVQ n+48(FP), CX
	MOVQ r+64(FP), SI
	CONSTANTS(wy+56(FP))

pair:
	WEIGHTS
	LOAD(R8, Y4, X4, R9, Y5, X5)
	LOAD(R10, Y6, X6, R11, Y7, X7)
	ACROSS(Y15, Y4, Y4)
	ACROSS(Y15, Y5, Y5)
	ACROSS(Y15, Y6, Y6)
	ACROSS(Y15, Y7, Y7)
	DOWN(Y4, Y5)
	DOWN(Y6, Y7)
	STOREPAIRS(Y4, Y6)
	ADDQ $64, DI
	ADDQ $64, BX
	SUBQ $8, CX
	JGT pair
	VZEROUPPER
	RET

// func gatherSharedRow(dst *uint64, top, bottom *byte, taps *tap, n int, wy uint32, r *reader)
TEXT ·gatherSharedRow(SB), NOSPLIT, $0-56
	MOVQ dst+0(FP), DI
	MOVQ top+8(FP), R8
	MOVQ bottom+16(FP), R9
	MOVQ taps+24(FP), BX
	MOVQ n+32(FP), CX
	MOVQ r+48(FP), SI
	CONSTANTS(wy+40(FP))

shared:
	WEIGHTS
	LOAD(R8, Y4, X4, R9, Y5, X5)
	ACROSS(Y14, Y4, Y6)
	ACROSS(Y14, Y5, Y7)
	ACROSS(Y15, Y4, Y4)
	ACROSS(Y15, Y5, Y5)
	DOWN(Y4, Y5)
	DOWN(Y6, Y7)
	STOREPAIRS(Y4, Y6)
	ADDQ $64, DI
	ADDQ $64, BX
	SUBQ $8, CX
	JGT shared
	VZEROUPPER
	RET
