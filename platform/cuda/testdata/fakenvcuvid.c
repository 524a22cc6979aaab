/* A stand-in for the one function of libnvcuvid that tells what the decoder can
 * do. The layout is that of NVIDIA's cuviddec.h, written by offsets. */
#include <stdint.h>
#include <string.h>

#ifndef ENGINES
#define ENGINES 7
#endif
#ifndef RESULT
#define RESULT 0
#endif

int cuvidGetDecoderCaps(void *caps) {
  uint32_t in[6];
  memcpy(in, caps, sizeof in);
  if (in[0] != 4 || in[1] != 1 || in[2] != 0 || in[3] || in[4] || in[5]) return 1;
  ((uint8_t *)caps)[24] = ENGINES > 0;
  ((uint8_t *)caps)[25] = ENGINES;
  return RESULT;
}
