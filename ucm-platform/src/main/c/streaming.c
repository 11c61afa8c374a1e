/*
 * Copies with streaming (non-temporal) stores, which go to memory without reading the lines they overwrite into the
 * processor's cache first: a third of the traffic of a copy between memory that no cache holds. They gather segments of
 * memory or scatter bytes over them; one of them takes the CRC32C of the bytes as they pass.
 *
 * They need AVX-512 F and VPCLMULQDQ: Intel's servers from Ice Lake on (2021), AMD's from Zen 4 on (2022). The caller
 * asks usable first and checks what it passes: memory that is there for the whole call, and no overlap.
 * Thread-safe; when a function returns, other threads see its bytes as they see those of ordinary stores.
 *
 * The checksum is folded as in V. Gopal et al., "Fast CRC Computation for Generic Polynomials Using PCLMULQDQ
 * Instruction", Intel 2009: four registers of 64 bytes each are multiplied by x^2048 modulo the polynomial and added
 * to the next 256 bytes. What is left has the checksum of all bytes before it, and is taken by the processor's
 * instruction for CRC32C.
 */
#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/uio.h>

#include "entry.h"

#define LINE 64
#define STRIDE (4 * LINE)
/* Below that the ends, which are no whole lines, cost more than the stores save. */
#define WORTH_IT 4096
#define WIDE __attribute__((target("avx512f,vpclmulqdq,sse4.2")))

/* Castagnoli's polynomial, bit-reflected: x^n modulo it is shifted by one bit, as PCLMULQDQ of reflected operands wants. */
#define X_2080 0x0dcb17aa4ull /* x^(2048 + 32), for the lower half of each 16 bytes */
#define X_2016 0x0b9e02b86ull /* x^(2048 - 32), for the upper half */

ENTRY(int32_t, memory_StreamingCopy, usable) {
  __builtin_cpu_init();
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("vpclmulqdq") && __builtin_cpu_supports("sse4.2");
}

/* Bytes before the next line. */
static size_t to_line(const uint8_t *at, size_t bytes) {
  size_t head = -(uintptr_t)at & (LINE - 1);
  return head < bytes ? head : bytes;
}

WIDE static uint32_t crc_of(uint32_t crc, const uint8_t *from, size_t bytes) {
  uint64_t sum = crc;
  for (; bytes >= 8; bytes -= 8, from += 8) {
    uint64_t word;
    memcpy(&word, from, 8);
    sum = _mm_crc32_u64(sum, word);
  }
  for (; bytes > 0; bytes--, from++) {
    sum = _mm_crc32_u8((uint32_t)sum, *from);
  }
  return (uint32_t)sum;
}

WIDE static inline __m512i move_line(uint8_t *to, const uint8_t *from) {
  __m512i line = _mm512_loadu_si512(from);
  _mm512_stream_si512((void *)to, line);
  return line;
}

WIDE static inline __m512i fold(__m512i sum, __m512i by, __m512i line) {
  __m512i low = _mm512_clmulepi64_epi128(sum, by, 0x00);
  __m512i high = _mm512_clmulepi64_epi128(sum, by, 0x11);
  return _mm512_ternarylogic_epi64(low, high, line, 0x96); /* the exclusive or of all three */
}

/* Copies bytes; `to` and `from` need no alignment. */
WIDE static void copy(uint8_t *to, const uint8_t *from, size_t bytes) {
  if (bytes < WORTH_IT) {
    memcpy(to, from, bytes);
    return;
  }
  size_t at = to_line(to, bytes);
  memcpy(to, from, at);
  for (; bytes - at >= STRIDE; at += STRIDE) {
    move_line(to + at, from + at);
    move_line(to + at + LINE, from + at + LINE);
    move_line(to + at + 2 * LINE, from + at + 2 * LINE);
    move_line(to + at + 3 * LINE, from + at + 3 * LINE);
  }
  memcpy(to + at, from + at, bytes - at);
}

/* The same, and returns the checksum as the processor's instruction keeps it: complemented, and begun with `crc`. */
WIDE static uint32_t copy_crc(uint8_t *to, const uint8_t *from, size_t bytes, uint32_t crc) {
  size_t at = to_line(to, bytes);
  memcpy(to, from, at);
  crc = crc_of(crc, from, at);
  if (bytes - at >= STRIDE) {
    const __m512i by = _mm512_set_epi64(X_2016, X_2080, X_2016, X_2080, X_2016, X_2080, X_2016, X_2080);
    __m512i a = move_line(to + at, from + at);
    __m512i b = move_line(to + at + LINE, from + at + LINE);
    __m512i c = move_line(to + at + 2 * LINE, from + at + 2 * LINE);
    __m512i d = move_line(to + at + 3 * LINE, from + at + 3 * LINE);
    a = _mm512_xor_si512(a, _mm512_zextsi128_si512(_mm_cvtsi32_si128((int)crc)));
    for (at += STRIDE; bytes - at >= STRIDE; at += STRIDE) {
      a = fold(a, by, move_line(to + at, from + at));
      b = fold(b, by, move_line(to + at + LINE, from + at + LINE));
      c = fold(c, by, move_line(to + at + 2 * LINE, from + at + 2 * LINE));
      d = fold(d, by, move_line(to + at + 3 * LINE, from + at + 3 * LINE));
    }
    __m512i left[4] = {a, b, c, d};
    crc = crc_of(0, (const uint8_t *)left, STRIDE);
  }
  memcpy(to + at, from + at, bytes - at);
  return crc_of(crc, from + at, bytes - at);
}

/* Copies the bytes of all segments into one. */
WIDE ENTRY(void, memory_StreamingCopy, gather, uint8_t *to, const struct iovec *segments, size_t count) {
  for (size_t i = 0; i < count; i++) {
    copy(to, segments[i].iov_base, segments[i].iov_len);
    to += segments[i].iov_len;
  }
  _mm_sfence();
}

/* Copies from one segment into all others, until they are full. */
WIDE ENTRY(void, memory_StreamingCopy, scatter, const struct iovec *segments, size_t count, const uint8_t *from) {
  for (size_t i = 0; i < count; i++) {
    copy(segments[i].iov_base, from, segments[i].iov_len);
    from += segments[i].iov_len;
  }
  _mm_sfence();
}

/* The same; returns the CRC32C of those bytes and of those before, whose CRC32C is `crc`: 0 for none. */
WIDE ENTRY(uint32_t, memory_StreamingCopy, scatterCrc, const struct iovec *segments, size_t count, const uint8_t *from,
           uint32_t crc) {
  uint32_t sum = ~crc;
  for (size_t i = 0; i < count; i++) {
    sum = copy_crc(segments[i].iov_base, from, segments[i].iov_len, sum);
    from += segments[i].iov_len;
  }
  _mm_sfence();
  return ~sum;
}
