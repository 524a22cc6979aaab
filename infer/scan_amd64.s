//go:build !purego && !noasm

#include "textflag.h"

// func scanRow(row *float32, n int, lift uint32) (above, any uint32)
TEXT ·scanRow(SB), NOSPLIT, $0-32
	MOVQ row+0(FP), BX
	MOVQ n+8(FP), CX
	MOVL lift+16(FP), AX
	VMOVD AX, X5
	VPBROADCASTD X5, Y5
	VPXOR X0, X0, X0
	VPXOR X1, X1, X1

scan:
	VMOVDQU (BX), Y2
	VPADDD Y5, Y2, Y3
	VPOR Y2, Y1, Y1
	VPOR Y3, Y0, Y0
	ADDQ $32, BX
	SUBQ $8, CX
	JGT scan

	VEXTRACTI128 $1, Y0, X2
	VEXTRACTI128 $1, Y1, X3
	VPOR X2, X0, X0
	VPOR X3, X1, X1
	VPSHUFD $0x4E, X0, X2
	VPSHUFD $0x4E, X1, X3
	VPOR X2, X0, X0
	VPOR X3, X1, X1
	VPSHUFD $0xB1, X0, X2
	VPSHUFD $0xB1, X1, X3
	VPOR X2, X0, X0
	VPOR X3, X1, X1
	VMOVD X0, AX
	VMOVD X1, DX
	VZEROUPPER
	MOVL AX, above+24(FP)
	MOVL DX, any+28(FP)
	RET
