/* Carries out the launches of the stand-in for libcuda: each kernel by the build
 * of its source for the processor. LETTERBOX, PREVIEW and CANDIDATES are the
 * paths of these builds. */
#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

typedef int (*launcher)(const char *, const unsigned *, unsigned, void **);

static struct { const char *prefix, *path; launcher run; } builds[] = {
    {"letterbox", LETTERBOX, 0}, {"preview", PREVIEW, 0}, {"candidates", CANDIDATES, 0},
};
enum { BUILDS = sizeof builds / sizeof *builds };

/* At once: the files may go. */
__attribute__((constructor)) static void open_builds(void) {
  for (int i = 0; i < BUILDS; i++) {
    void *lib = dlopen(builds[i].path, RTLD_NOW | RTLD_LOCAL);
    if (lib) builds[i].run = (launcher)dlsym(lib, "launch_host");
  }
}

/* The builds keep the thread that they are at in globals: one launch at a time,
 * of whichever card. */
static pthread_mutex_t one = PTHREAD_MUTEX_INITIALIZER;

int launch_host(const char *kernel, const unsigned *shape, unsigned shared, void **params) {
  int status = 500;
  pthread_mutex_lock(&one);
  for (int i = 0; i < BUILDS; i++)
    if (builds[i].run && !strncmp(kernel, builds[i].prefix, strlen(builds[i].prefix))) status = builds[i].run(kernel, shape, shared, params);
  pthread_mutex_unlock(&one);
  return status;
}
