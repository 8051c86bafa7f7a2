// Names of the tile's control registers, of their fields, and of its memory. What a codelet may know is that there are six workers. The other
// numbers are the machine's and not public, so they have a name and no value here: what computes with one is refused with its line.
#pragma once
#define CTXT_WORKERS 6
extern const unsigned CSR_W_WSR__INDEX;
extern const unsigned CSR_W_FP_CTL__INDEX;
extern const unsigned CSR_W_FP_CLR__INDEX;
extern const unsigned CSR_W_FP_STS__INDEX;
extern const unsigned CSR_W_FP_NFMT__INDEX;
extern const unsigned CSR_W_FP_SCL__INDEX;
extern const unsigned CSR_W_REPEAT_COUNT__INDEX;
extern const unsigned CSR_W_CCCSLOAD__INDEX;
extern const unsigned CSR_W_PRNG_0_0__INDEX;
extern const unsigned CSR_W_PRNG_0_1__INDEX;
extern const unsigned CSR_W_PRNG_1_0__INDEX;
extern const unsigned CSR_W_PRNG_1_1__INDEX;
extern const unsigned CSR_W_PRNG_SEED__INDEX;
extern const unsigned CSR_S_FP_ICTL__INDEX;
extern const unsigned CSR_S_FP_INFMT__INDEX;
extern const unsigned CSR_S_FP_ISCL__INDEX;
extern const unsigned CSR_S_CCCSLOAD__INDEX;
extern const unsigned CSR_S_SCOUNT_L__INDEX;
extern const unsigned CSR_S_SCOUNT_U__INDEX;
extern const unsigned CSR_W_WSR__CTXTID_M1__SHIFT;
extern const unsigned CSR_W_WSR__CTXTID_M1__MASK;
extern const unsigned CSR_W_FP_CLR__ZAACC__SHIFT;
extern const unsigned CSR_W_FP_CLR__ZAACC__MASK;
extern const unsigned CSR_W_REPEAT_COUNT__VALUE__SHIFT;
extern const unsigned CSR_W_REPEAT_COUNT__VALUE__MASK;
extern const unsigned CSR_S_FP_ICTL__OFLO__SHIFT;
extern const unsigned CSR_S_FP_ICTL__OFLO__MASK;
extern const unsigned CSR_S_FP_ICTL__ESR__SHIFT;
extern const unsigned CSR_S_FP_ICTL__ESR__MASK;
extern const unsigned CSR_S_FP_ICTL__NANOO__SHIFT;
extern const unsigned CSR_S_FP_ICTL__NANOO__MASK;
extern const unsigned CSR_UPPER_MASK;
extern const unsigned TEXCH_SYNCZONE_LOCAL;
extern const unsigned TMEM_REGION0_BASE_ADDR;
extern const unsigned TMEM_BYTE_MAX_ADDRESS_WIDTH;
extern const unsigned TMEM_FULL_ADDRESS_MASK;
extern const unsigned TMEM_ELEMSIZE;
