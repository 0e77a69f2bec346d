// A vendor's shared library, found when it is first needed: nothing of CUDA is needed to build or import mybackend.
#pragma once

#include <c10/util/Exception.h>
#include <dlfcn.h>

#include <initializer_list>
#include <string>

namespace mybackend::aten {

class SharedLibrary {
 public:
  // The first of `names` that the dynamic loader finds; `what` says in an error what it is needed for.
  SharedLibrary(std::initializer_list<const char*> names, const char* what) {
    std::string tried;
    for (const char* name : names) {
      handle_ = dlopen(name, RTLD_NOW | RTLD_LOCAL);
      if (handle_ != nullptr) {
        name_ = name;
        return;
      }
      tried += (tried.empty() ? "" : " or ") + std::string(name);
    }
    TORCH_CHECK(false, "mybackend: ", what, " on the cuda driver needs ", tried,
                ", which the dynamic loader does not find; install it or put its folder on LD_LIBRARY_PATH");
  }

  template <class Function>
  void find(Function*& function, const char* symbol) const {
    function = reinterpret_cast<Function*>(dlsym(handle_, symbol));
    TORCH_CHECK(function != nullptr, "mybackend: ", name_, " has no function ", symbol,
                "; its version is not supported");
  }

 private:
  void* handle_ = nullptr;
  std::string name_;
};

}  // namespace mybackend::aten
