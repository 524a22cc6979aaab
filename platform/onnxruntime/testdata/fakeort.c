/* A stand-in for the GPU build of ONNX Runtime: the CPU build at REAL does the
 * work, and the functions for CUDA and TensorRT are replaced by ones that note
 * what they are given. "Device memory" is host memory whose address has bit 47
 * set, as the stand-in for libcuda has it.
 *
 * Compile-time shapes: REAL is the path of the real library; VERSION the one
 * that this one says; BUILTIN=0 leaves the providers out of the core.
 *
 * At run time the fake_... functions at the end script it. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifndef VERSION
#define VERSION "1.30.0"
#endif
#ifndef BUILTIN
#define BUILTIN 1
#endif

#define TABLE 317
#define DEVICE_BIT (1ull << 56)

typedef void *handle;
typedef handle (*fn)();

struct base {
  const void *(*get_api)(uint32_t);
  const char *(*get_version)(void);
};

static fn real[TABLE], table[TABLE];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t accounts = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;

/* ---- what was called ---- */

static char notes[1 << 20];

static void note(const char *format, ...) {
  va_list args;
  va_start(args, format);
  pthread_mutex_lock(&lock);
  size_t n = strlen(notes);
  vsnprintf(notes + n, sizeof notes - n, format, args);
  pthread_mutex_unlock(&lock);
  va_end(args);
}

/* ---- the script ---- */

static char fail_call[64], fail_text[512];
static int block_build, building, corrupt_cuda, corrupt_trt, corrupt_graph, on_cpu, no_context;
static int block_session, cuda_sessions, slow_plain;
static int abandoned, misused;

static handle status(const char *text) { return real[0](1, text); }

/* The scripted failure of a call, once. */
static handle failure(const char *call) {
  handle s = NULL;
  pthread_mutex_lock(&lock);
  if (!strcmp(fail_call, call)) {
    s = status(fail_text);
    fail_call[0] = 0;
  }
  pthread_mutex_unlock(&lock);
  return s;
}

/* ---- objects that the providers are known by ---- */

enum provider { CPU, CUDA, TENSORRT };

struct options {
  enum provider provider;
  char dump[512];
  char dumping;
};

/* What a run takes of page-locked memory stays taken until the session's next run
 * that waits, and what was given back once makes room for later ones. */
struct taken {
  int runs, room;    /* since the last run that waited; at most */
  uint64_t captured; /* graphs, by number */
  int returned;      /* a run waited since the first capture */
  pthread_t by;      /* who has queued runs */
};

struct mark { handle key; enum provider provider; struct options *o; handle value[2]; struct taken taken; int graph, queues; struct mark *next; };
static struct mark *sessions, *session_options, *memories, *bindings, *run_options_;

static struct mark *find(struct mark *list, handle key) {
  pthread_mutex_lock(&lock);
  while (list && list->key != key) list = list->next;
  pthread_mutex_unlock(&lock);
  return list;
}

static struct mark *mark(struct mark **list, handle key) {
  struct mark *m = find(*list, key);
  if (!m) {
    m = calloc(1, sizeof *m);
    m->key = key;
    pthread_mutex_lock(&lock);
    m->next = *list, *list = m;
    pthread_mutex_unlock(&lock);
  }
  m->provider = CPU, m->o = NULL, m->value[0] = m->value[1] = NULL;
  memset(&m->taken, 0, sizeof m->taken), m->graph = m->queues = 0;
  return m;
}

/* ---- providers of the core ---- */

static char *names[] = {"TensorrtExecutionProvider", "CUDAExecutionProvider", "CPUExecutionProvider"};

static handle get_providers(char ***out, int *n) {
  *out = BUILTIN ? names : names + 2;
  *n = BUILTIN ? 3 : 1;
  return NULL;
}
static handle release_providers(char **p, int n) { (void)p, (void)n; return NULL; }

static handle create_options(struct options **out, enum provider p) {
  *out = calloc(1, sizeof **out);
  (*out)->provider = p;
  return NULL;
}
static handle create_cuda(struct options **out) { return create_options(out, CUDA); }
static handle create_trt(struct options **out) { return create_options(out, TENSORRT); }

static const char *label(struct options *o) { return o->provider == CUDA ? "cuda" : "tensorrt"; }

static handle update(struct options *o, const char *const *keys, const char *const *values, size_t n) {
  handle s = failure(o->provider == CUDA ? "update cuda" : "update tensorrt");
  if (s) return s;
  enum provider p = o->provider;
  memset(o, 0, sizeof *o); /* what an earlier call set is gone */
  o->provider = p;
  note("%s options %zu:", label(o), n);
  for (size_t i = 0; i < n; i++) {
    note(" %s=%s", keys[i], strcmp(keys[i], "trt_ep_context_file_path") ? values[i] : "PATH");
    if (!strcmp(keys[i], "trt_ep_context_file_path")) snprintf(o->dump, sizeof o->dump, "%s", values[i]);
    if (!strcmp(keys[i], "trt_dump_ep_context_model")) o->dumping = values[i][0] == '1';
  }
  note("\n");
  return NULL;
}

static handle update_value(struct options *o, const char *key, void *value) {
  note("%s %s=%p\n", label(o), key, value);
  return NULL;
}

static void release_options(struct options *o) { (void)o; } /* session options may still name it */

static handle append(handle options, struct options *o) {
  note("append %s\n", label(o));
  struct mark *m = find(session_options, options);
  if (m && m->provider != CPU) return NULL; /* the first one is preferred */
  m = mark(&session_options, options);
  m->provider = o->provider, m->o = o;
  return NULL;
}

/* ---- provider libraries ---- */

static int devices[2] = {0, 1};
static const int *device_list[2] = {&devices[0], &devices[1]};

static handle register_library(handle env, const char *name, const char *path) {
  (void)env;
  note("register %s %s\n", name, strrchr(path, '/') + 1);
  return failure("register");
}
static handle get_devices(handle env, const int *const **out, size_t *n) {
  (void)env;
  *out = device_list, *n = 2;
  return NULL;
}
static const char *device_name(const int *d) { (void)d; return names[1]; }
static const void *device_options(const int *d) { return d; }
static const char *key_value(const int *d, const char *key) {
  static const char *ordinals[] = {"1", "0"}; /* in another order than the list */
  return strcmp(key, "device_id") ? NULL : ordinals[*d];
}
static handle append_v2(handle options, handle env, const int *const *d, size_t n, const char *const *keys, const char *const *values, size_t pairs) {
  (void)env;
  note("append plugin device %d of %zu, options %zu:", **d, n, pairs);
  for (size_t i = 0; i < pairs; i++) note(" %s=%s", keys[i], values[i]);
  note("\n");
  mark(&session_options, options)->provider = CUDA;
  return NULL;
}

/* ---- memory and tensors ---- */

static handle create_memory(const char *name, int allocator, int id, int type, handle *out) {
  if (strcmp(name, "Cuda")) return real[68](name, allocator, id, type, out);
  note("memory %s allocator %d device %d type %d\n", name, allocator, id, type);
  handle s = real[69](0, 0, out);
  mark(&memories, *out)->provider = CUDA;
  return s;
}
static void release_memory(handle m) {
  struct mark *k = find(memories, m);
  if (k) k->provider = CPU;
  real[94](m);
}

static handle create_tensor(handle memory, void *data, size_t size, const int64_t *shape, size_t rank, int type, handle *out) {
  struct mark *m = find(memories, memory);
  if (m && m->provider == CUDA) {
    if (!((uintptr_t)data & DEVICE_BIT)) return status("host memory called device memory");
    note("tensor %zu bytes type %d:", size, type);
    for (size_t i = 0; i < rank; i++) note(" %lld", (long long)shape[i]);
    note("\n");
    data = (void *)((uintptr_t)data & ~DEVICE_BIT);
  }
  return real[49](memory, data, size, shape, rank, type, out);
}

/* ---- sessions ---- */

static handle opened(handle env, const void *model, size_t size, handle options, handle *out, fn create) {
  struct mark *m = find(session_options, options);
  enum provider p = m ? m->provider : CPU;
  if (p == CUDA) {
    pthread_mutex_lock(&lock);
    int nth = ++cuda_sessions;
    while (block_session && nth >= block_session) pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
  }
  handle s = failure(p == CPU ? "session cpu" : p == CUDA ? "session cuda" : "session tensorrt");
  if (s) return s;
  if (m && m->o && m->o->dumping) {
    pthread_mutex_lock(&lock);
    building = 1;
    pthread_cond_broadcast(&changed);
    while (block_build) pthread_cond_wait(&changed, &lock);
    building = 0;
    pthread_mutex_unlock(&lock);
    if ((s = failure("build"))) return s;
    note("build\n");
    FILE *f = no_context ? NULL : fopen(m->o->dump, "wb");
    if (f && create == real[8]) fwrite(model, 1, size, f);
    FILE *from = f && create == real[7] ? fopen(model, "rb") : NULL;
    for (int c; from && (c = fgetc(from)) != EOF;) fputc(c, f);
    if (from) fclose(from);
    if (f) fclose(f);
  }
  s = create == real[8] ? create(env, model, size, options, out) : create(env, model, options, out);
  if (!s) mark(&sessions, *out)->provider = p;
  return s;
}

static handle create_session(handle env, const char *path, handle options, handle *out) {
  return opened(env, path, strlen(path), options, out, real[7]);
}
static handle create_session_from_array(handle env, const void *model, size_t size, handle options, handle *out) {
  return opened(env, model, size, options, out, real[8]);
}
static void release_session_options(handle o) {
  struct mark *m = find(session_options, o);
  if (m) m->provider = CPU, m->o = NULL; /* the address may come again */
  real[100](o);
}
static void release_session(handle s) {
  struct mark *m = find(sessions, s);
  if (m && m->provider != CPU) {
    note("release %s\n", m->provider == CUDA ? "cuda" : "tensorrt");
    /* A session that captures gives back at its release. */
    if (m->taken.runs && !m->taken.captured) abandoned++;
  }
  if (m) m->provider = CPU;
  real[95](s);
}

static handle bind_output(handle binding, const char *name, handle value) {
  struct mark *m = find(bindings, binding);
  if (!m) m = mark(&bindings, binding);
  m->value[!strcmp(name, "scores")] = value;
  return real[137](binding, name, value);
}
static void release_binding(handle b) {
  struct mark *m = find(bindings, b);
  if (m) m->value[0] = m->value[1] = NULL;
  real[135](b);
}

/* What a broken provider does to the scores. */
enum { GOOD, NAN_SCORES, ZERO_SCORES, OTHER_SCORES, STALE };

static void spoil(handle tensor, int how) {
  float *data;
  handle info;
  size_t n;
  real[51](tensor, &data);
  real[65](tensor, &info);
  real[64](info, &n);
  real[99](info);
  for (size_t i = 0; i < n; i++) data[i] = how == NAN_SCORES ? __builtin_nanf("") : how == ZERO_SCORES ? 0 : data[i] * 0.9f;
}

/* Does the session's accounts of a run, and says what is wrong with it. */
static const char *take(struct taken *t, const struct mark *o) {
  uint64_t bit = o->graph > 0 ? 1ull << o->graph : 0;
  if (bit && (!o->queues || t->captured & bit && t->returned)) misused++; /* what the graph reads is gone, or the capture waits */
  if (bit && t->captured & bit) return NULL;
  if (t->runs && !pthread_equal(t->by, pthread_self())) misused++; /* it may run beside those that serve */
  t->by = pthread_self(), t->runs++;
  if (t->room < t->runs) t->room = t->runs;
  if (bit) { /* that was the plain run before the capture */
    if (++t->runs > t->room) return "CUDA failure 900: operation not permitted when stream is capturing ; cudaHostAlloc";
    t->captured |= bit;
  } else if (!o->queues) {
    t->runs = 0;
    if (t->captured) t->returned = 1, note("settled after a capture\n");
  }
  return NULL;
}

static handle run(handle session, handle run_options, handle binding) {
  struct mark *s = find(sessions, session), *b = find(bindings, binding);
  enum provider p = s ? s->provider : CPU;
  int replays = 0;
  if (p != CPU) {
    const char *names[] = {"cpu", "cuda", "tensorrt"};
    handle bad = failure("run");
    if (bad) return bad;
    if (!run_options) return status("run that waits");
    static const struct mark none;
    const struct mark *o = find(run_options_, run_options);
    if (!o) o = &none;
    replays = o->graph > 0;
    if (replays && (bad = failure("graph"))) return bad;
    note(replays ? "replay %s\n" : o->queues ? "run %s\n" : "settle %s\n", names[p]);
    pthread_mutex_lock(&accounts);
    const char *wrong = take(&s->taken, o);
    pthread_mutex_unlock(&accounts);
    if (wrong) return status(wrong);
  }
  if (!replays && slow_plain) usleep(1000 * slow_plain);
  int how = replays && corrupt_graph ? corrupt_graph : p == CUDA ? corrupt_cuda : p == TENSORRT ? corrupt_trt : GOOD;
  if (how == STALE) return NULL;
  handle bad = real[133](session, run_options, binding);
  if (!bad && how != GOOD && b && b->value[1]) spoil(b->value[1], how);
  return bad;
}

static handle add_run_config(handle o, const char *key, const char *value) {
  note("run option %s=%s\n", key, value);
  struct mark *m = find(run_options_, o);
  if (!m) m = mark(&run_options_, o);
  if (!strcmp(key, "gpu_graph_id")) m->graph = atoi(value);
  if (!strcmp(key, "disable_synchronize_execution_providers")) m->queues = atoi(value);
  return real[165](o, key, value);
}

static void release_run_options(handle o) {
  if (find(run_options_, o)) mark(&run_options_, o); /* the address may come again */
  real[97](o);
}

/* The profile names the provider that runs, unless the script says that all
 * stayed on the CPU. */
static handle end_profile(handle session, handle allocator, char **path) {
  struct mark *m = find(sessions, session);
  handle s = real[110](session, allocator, path);
  if (s || !m || m->provider == CPU || on_cpu) return s;
  FILE *f = fopen(*path, "rb");
  static char text[8 << 20];
  size_t n = f ? fread(text, 1, sizeof text - 1, f) : 0;
  text[n] = 0;
  if (f) fclose(f);
  f = fopen(*path, "wb");
  const char *from = "CPUExecutionProvider", *to = names[m->provider == CUDA];
  for (char *at = text, *hit; f && *at; at = hit + strlen(from)) {
    hit = strstr(at, from);
    if (!hit) {
      fputs(at, f);
      break;
    }
    fwrite(at, 1, hit - at, f);
    fputs(to, f);
  }
  if (f) fclose(f);
  return NULL;
}

/* ---- the library ---- */

static const char *version(void) { return VERSION; }

static const void *get_api(uint32_t v) {
  if (v > (uint32_t)atoi(VERSION + 2)) return NULL;
  static int done;
  if (done++) return table;
  handle lib = dlopen(REAL, RTLD_NOW | RTLD_LOCAL);
  if (!lib) return NULL;
  struct base *b = ((struct base * (*)(void)) dlsym(lib, "OrtGetApiBase"))();
  const fn *all = b->get_api(22);
  memcpy(real, all, sizeof real), memcpy(table, all, sizeof table);
  static const struct { int i; void *f; } replaced[] = {
      {7, create_session}, {8, create_session_from_array}, {49, create_tensor}, {68, create_memory}, {94, release_memory}, {95, release_session}, {97, release_run_options},
      {100, release_session_options}, {110, end_profile}, {125, get_providers}, {126, release_providers}, {133, run}, {135, release_binding},
      {137, bind_output}, {165, add_run_config}, {170, append}, {171, create_trt}, {172, update}, {174, release_options}, {204, append},
      {205, create_cuda}, {206, update}, {208, release_options}, {261, update_value}, {263, update_value}, {297, key_value},
      {301, register_library}, {303, get_devices}, {304, append_v2}, {312, device_name}, {315, device_options},
  };
  for (size_t i = 0; i < sizeof replaced / sizeof *replaced; i++) table[replaced[i].i] = (fn)replaced[i].f;
  return table;
}

const struct base *OrtGetApiBase(void) {
  static const struct base base = {get_api, version};
  return &base;
}

/* ---- for the tests ---- */

const char *fake_notes(void) { return notes; }
void fake_clear(void) { notes[0] = 0; }

/* The next such call fails with text. */
void fake_fail(const char *call, const char *text) {
  pthread_mutex_lock(&lock);
  snprintf(fail_call, sizeof fail_call, "%s", call);
  snprintf(fail_text, sizeof fail_text, "%s", text);
  pthread_mutex_unlock(&lock);
}

/* Builds do not end until they are let. */
void fake_block_build(int block) {
  pthread_mutex_lock(&lock);
  block_build = block;
  pthread_cond_broadcast(&changed);
  pthread_mutex_unlock(&lock);
}

/* Waits until a build is under way. */
void fake_await_build(void) {
  pthread_mutex_lock(&lock);
  while (!building) pthread_cond_wait(&changed, &lock);
  pthread_mutex_unlock(&lock);
}

void fake_corrupt(int cuda, int trt) { corrupt_cuda = cuda, corrupt_trt = trt; }

/* From the nth session of CUDA on none is made until they are let; 0 lets them. */
void fake_block_session(int nth) {
  pthread_mutex_lock(&lock);
  block_session = nth;
  pthread_cond_broadcast(&changed);
  pthread_mutex_unlock(&lock);
}

/* Runs that replay no graph take so much longer. */
void fake_slow_plain(int ms) { slow_plain = ms; }
void fake_graph_answer(int how) { corrupt_graph = how; }
/* Sessions that were released with what their runs had taken; runs that would
 * have read what was given back, waited in a capture, or settled a session on
 * another thread than that of its runs. */
int fake_abandoned(void) { return abandoned; }
int fake_misused(void) { return misused; }

void fake_on_cpu(int yes) { on_cpu = yes; }
void fake_no_context(int yes) { no_context = yes; }
