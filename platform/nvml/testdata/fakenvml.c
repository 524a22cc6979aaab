/* A stand-in for libnvidia-ml: one card at work. With -DMUTE it tells nothing
 * but its memory, as parts of cards (MIG) do. */
#include <stdint.h>
#include <string.h>

#ifndef INIT
#define INIT 0
#endif
#ifdef MUTE
#define TELL(what) return 3 /* NVML_ERROR_NOT_SUPPORTED */
#else
#define TELL(what) what; return 0
#endif

static int card;

int nvmlInit_v2(void) { return INIT; }
int nvmlShutdown(void) { return 0; }
int nvmlDeviceGetHandleByUUID(const char *uuid, void **device) {
  if (strcmp(uuid, "GPU-1")) return 6; /* NVML_ERROR_NOT_FOUND */
  *device = &card;
  return 0;
}
int nvmlDeviceGetUtilizationRates(void *device, uint32_t *rates) {
  if (device != &card) return 2;
  TELL((rates[0] = 75, rates[1] = 10));
}
int nvmlDeviceGetDecoderUtilization(void *device, uint32_t *percent, uint32_t *period) {
  if (device != &card) return 2;
  TELL((*percent = 90, *period = 167000));
}
int nvmlDeviceGetPcieThroughput(void *device, int counter, uint32_t *kib) {
  if (device != &card) return 2;
  TELL((*kib = counter ? 2048 : 1024));
}
int nvmlDeviceGetMemoryInfo(void *device, uint64_t *memory) {
  if (device != &card) return 2;
  memory[0] = 140ull << 30, memory[1] = 100ull << 30, memory[2] = 40ull << 30;
  return 0;
}
