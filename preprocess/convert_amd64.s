//go:build !purego && !noasm

#include "textflag.h"

// Offsets in lanes.
#define BLACK 0
#define MID 8
#define MAGIC 16
#define KY 24
#define KRV 32
#define KGU 40
#define KGV 48
#define KBU 56
#define PEAK 64


// One channel of eight samples: clamp V to 0..peak, normalise with the mul and
// add at OFF, store at DST. Y7 is 0.
#define FINISH(V, MUL, ADD, DST) \
	VMAXPS Y7, V, V                          \
	VBROADCASTF128 PEAK(SI), Y0              \
	VMINPS Y0, V, V                          \
	VBROADCASTF128 MUL, Y0                   \
	VMULPS Y0, V, V                          \
	VBROADCASTF128 ADD, Y0                   \
	VADDPS Y0, V, V                          \
	VMOVUPS V, (DST)(DX*4)

// Four samples of Cb into Y2 and Cr into Y3, less the middle.
#define CHROMA(SRC) \
	VMOVDQU SRC, Y2                \
	VPSRLQ $32, Y2, Y3             \
	VPBLENDD $0xAA, Y15, Y2, Y2    \
	VPOR Y15, Y3, Y3               \
	VSUBPD Y13, Y2, Y2             \
	VSUBPD Y13, Y3, Y3

// Four samples of Y into V, less black, times the factor of Y.
#define LUMA(SRC, V) \
	VPMOVZXDQ SRC, V      \
	VPOR Y15, V, V        \
	VSUBPD Y14, V, V      \
	VMULPD Y12, V, V

// func convertRow(red, green, blue *float32, y *uint32, uv *uint64, n int, l *lanes)
TEXT ·convertRow(SB), NOSPLIT, $0-56
	MOVQ red+0(FP), R8
	MOVQ green+8(FP), R9
	MOVQ blue+16(FP), R10
	MOVQ y+24(FP), AX
	MOVQ uv+32(FP), BX
	MOVQ n+40(FP), CX
	MOVQ l+48(FP), SI
	VBROADCASTSD MAGIC(SI), Y15
	VBROADCASTSD BLACK(SI), Y14
	VBROADCASTSD MID(SI), Y13
	VBROADCASTSD KY(SI), Y12
	VBROADCASTSD KRV(SI), Y11
	VBROADCASTSD KGU(SI), Y10
	VBROADCASTSD KGV(SI), Y9
	VBROADCASTSD KBU(SI), Y8
	VXORPS Y7, Y7, Y7
	XORQ DX, DX

row:
	LUMA((AX)(DX*4), Y0)
	CHROMA((BX)(DX*8))
	VMOVAPD Y0, Y4
	VMOVAPD Y0, Y6
	VFMADD231PD Y11, Y3, Y4
	VFMADD231PD Y8, Y2, Y6
	VFNMADD231PD Y10, Y2, Y0
	VFNMADD231PD Y9, Y3, Y0
	VCVTPD2PSY Y4, X4
	VCVTPD2PSY Y0, X5
	VCVTPD2PSY Y6, X6

	LUMA(16(AX)(DX*4), Y0)
	CHROMA(32(BX)(DX*8))
	VMOVAPD Y0, Y1
	VFMADD231PD Y11, Y3, Y1
	VCVTPD2PSY Y1, X1
	VINSERTF128 $1, X1, Y4, Y4
	VMOVAPD Y0, Y1
	VFMADD231PD Y8, Y2, Y1
	VCVTPD2PSY Y1, X1
	VINSERTF128 $1, X1, Y6, Y6
	VFNMADD231PD Y10, Y2, Y0
	VFNMADD231PD Y9, Y3, Y0
	VCVTPD2PSY Y0, X0
	VINSERTF128 $1, X0, Y5, Y5

	FINISH(Y4, 80(SI), 96(SI), R8)
	FINISH(Y5, 112(SI), 128(SI), R9)
	FINISH(Y6, 144(SI), 160(SI), R10)
	ADDQ $8, DX
	CMPQ DX, CX
	JLT row
	VZEROUPPER
	RET

// func convertGrayRow(red, green, blue *float32, y *uint32, n int, l *lanes)
TEXT ·convertGrayRow(SB), NOSPLIT, $0-48
	MOVQ red+0(FP), R8
	MOVQ green+8(FP), R9
	MOVQ blue+16(FP), R10
	MOVQ y+24(FP), AX
	MOVQ n+32(FP), CX
	MOVQ l+40(FP), SI
	VBROADCASTSD MAGIC(SI), Y15
	VBROADCASTSD BLACK(SI), Y14
	VBROADCASTSD KY(SI), Y12
	VXORPS Y7, Y7, Y7
	VBROADCASTF128 80(SI), Y8
	VBROADCASTF128 96(SI), Y9
	VBROADCASTF128 112(SI), Y10
	VBROADCASTF128 128(SI), Y11
	VBROADCASTF128 144(SI), Y5
	VBROADCASTF128 160(SI), Y6
	VBROADCASTF128 PEAK(SI), Y13
	XORQ DX, DX

gray:
	LUMA((AX)(DX*4), Y0)
	LUMA(16(AX)(DX*4), Y1)
	VCVTPD2PSY Y0, X0
	VCVTPD2PSY Y1, X1
	VINSERTF128 $1, X1, Y0, Y0
	VMAXPS Y7, Y0, Y0
	VMINPS Y13, Y0, Y0
	VMULPS Y8, Y0, Y1
	VMULPS Y10, Y0, Y2
	VMULPS Y5, Y0, Y3
	VADDPS Y9, Y1, Y1
	VADDPS Y11, Y2, Y2
	VADDPS Y6, Y3, Y3
	VMOVUPS Y1, (R8)(DX*4)
	VMOVUPS Y2, (R9)(DX*4)
	VMOVUPS Y3, (R10)(DX*4)
	ADDQ $8, DX
	CMPQ DX, CX
	JLT gray
	VZEROUPPER
	RET
