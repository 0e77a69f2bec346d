// mybackend._C: the one crossing from Python to C++. Loading it loads libmybackend.so, which registers everything.
#include "csrc/bindings/bind.h"

PYBIND11_MODULE(_C, m) {
  using namespace mybackend::bindings;
  bind_device(m);
  bind_memory(m);
  bind_streams(m);
  bind_random(m);
  bind_graph(m);
  bind_fallback(m);
  bind_tensor(m);
  bind_engine(m);
  bind_compile(m);
}
