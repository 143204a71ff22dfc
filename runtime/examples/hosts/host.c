/* A host in C99: two queries, two keys, one of each pair far more alike. Each failure has a status
 * and a text. */
#include <lacuna/lacuna.h>
#include <stdio.h>
#include <string.h>

enum { kTokens = 2, kDim = 64 };

static int fail(const char* what) {
  fprintf(stderr, "%s: %s", what, lacuna_last_error());
  return 1;
}

int main(void) {
  static const char spec[] = "{\"version\": 1, \"name\": \"dense\"}";
  float q[kTokens * kDim] = {0}, k[kTokens * kDim] = {0}, v[kTokens * kDim] = {0};
  float o[kTokens * kDim] = {0};
  int64_t shape[4] = {1, 1, kTokens, kDim};
  int i;
  DLTensor tensors[4];
  float* data[4];
  lacuna_engine_options engine_options;
  lacuna_compile_options compile_options;
  lacuna_launch_args args;
  lacuna_engine* engine = NULL;
  lacuna_kernel* kernel = NULL;

  q[0] = k[0] = 100.0f;
  q[kDim + 1] = k[kDim + 1] = 100.0f;
  for (i = 0; i < kDim; ++i) v[i] = 1.0f, v[kDim + i] = 2.0f;
  data[0] = q, data[1] = k, data[2] = v, data[3] = o;
  memset(tensors, 0, sizeof(tensors));
  for (i = 0; i < 4; ++i) {
    tensors[i].data = data[i];
    tensors[i].device.device_type = kDLCPU;
    tensors[i].ndim = 4;
    tensors[i].dtype.code = kDLFloat;
    tensors[i].dtype.bits = 32;
    tensors[i].dtype.lanes = 1;
    tensors[i].shape = shape;
  }

  memset(&engine_options, 0, sizeof(engine_options));
  engine_options.struct_size = sizeof(engine_options);
  engine_options.device = "cpu";
  if (lacuna_engine_create(&engine_options, &engine) != LACUNA_OK) return fail("engine");

  memset(&compile_options, 0, sizeof(compile_options));
  compile_options.struct_size = sizeof(compile_options);
  compile_options.head_dim = kDim;
  compile_options.dtype = LACUNA_F32;
  if (lacuna_compile(engine, spec, strlen(spec), &compile_options, &kernel) != LACUNA_OK)
    return fail("compile");
  if (lacuna_prepare(kernel) != LACUNA_OK) return fail("prepare");

  memset(&args, 0, sizeof(args));
  args.struct_size = sizeof(args);
  args.q = &tensors[0];
  args.k = &tensors[1];
  args.v = &tensors[2];
  args.o = &tensors[3];
  if (lacuna_launch(kernel, &args) != LACUNA_OK) return fail("launch");
  lacuna_kernel_destroy(kernel);
  lacuna_engine_destroy(engine);

  for (i = 0; i < kTokens * kDim; ++i) {
    if (o[i] != (i < kDim ? 1.0f : 2.0f)) {
      fprintf(stderr, "o[%d] = %g\n", i, (double)o[i]);
      return 1;
    }
  }
  printf("lacuna %s\n", lacuna_version());
  return 0;
}
