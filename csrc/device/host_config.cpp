#include "csrc/device/host_config.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <stdexcept>

namespace mybackend::device::host {
namespace {

[[noreturn]] void reject(const char* variable, const std::string& value, const char* expected) {
  throw std::runtime_error(std::string(variable) + "='" + value + "' is not understood: expected " + expected);
}

std::string read(const char* variable) {
  const char* value = std::getenv(variable);
  return value == nullptr ? "" : value;
}

uint64_t read_count(const char* variable, uint64_t otherwise, uint64_t most, const char* expected) {
  const std::string text = read(variable);
  if (text.empty()) return otherwise;
  if (text.find_first_not_of("0123456789") != std::string::npos || text.size() > 19) reject(variable, text, expected);
  const uint64_t value = std::stoull(text);
  if (value > most) reject(variable, text, expected);
  return value;
}

// A container may allow less than the machine has.
size_t physical_memory() {
  size_t bytes = size_t(sysconf(_SC_PHYS_PAGES)) * size_t(sysconf(_SC_PAGE_SIZE));
  std::ifstream limit("/sys/fs/cgroup/memory.max");
  size_t allowed = 0;
  if (limit >> allowed && allowed > 0) bytes = std::min(bytes, allowed);
  return bytes;
}

size_t read_memory(int devices) {
  constexpr const char* kVariable = "MYBACKEND_HOST_MEMORY";
  constexpr const char* kExpected = "a number of bytes such as 1073741824, 512M or 4G";
  const std::string text = read(kVariable);
  if (text.empty()) {
    // A fifth stays with the program itself.
    const size_t share = physical_memory() / 5 * 4 / size_t(std::max(devices, 1));
    return share / (size_t{1} << 20) * (size_t{1} << 20);
  }
  const size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  if (digits == 0 || digits > 18) reject(kVariable, text, kExpected);
  std::string suffix = text.substr(digits);
  for (char& c : suffix) c = char(std::toupper(static_cast<unsigned char>(c)));
  if (suffix.size() > 1 && suffix.back() == 'B') suffix.pop_back();
  if (suffix.size() > 1 && suffix.back() == 'I') suffix.pop_back();
  int shift = 0;
  if (suffix == "K")
    shift = 10;
  else if (suffix == "M")
    shift = 20;
  else if (suffix == "G")
    shift = 30;
  else if (suffix == "T")
    shift = 40;
  else if (!suffix.empty() && suffix != "B")
    reject(kVariable, text, kExpected);
  const uint64_t value = std::stoull(text.substr(0, digits));
  if (value > (UINT64_MAX >> 1) >> shift) reject(kVariable, text, kExpected);
  return size_t(value << shift);
}

Config read_config() {
  Config c;
  c.devices = int(read_count("MYBACKEND_HOST_DEVICES", 2, kMostDevices, "a number from 0 to 64"));
  c.memory_per_device = read_memory(c.devices);
  const std::string streams = read("MYBACKEND_HOST_STREAMS");
  if (!streams.empty() && streams != "inline" && streams != "async")
    reject("MYBACKEND_HOST_STREAMS", streams, "inline or async");
  c.async = streams == "async";
  c.seed = read_count("MYBACKEND_HOST_SEED", 0, UINT64_MAX >> 1, "a number");
  c.isa = read("MYBACKEND_HOST_ISA");
  return c;
}

}  // namespace

const Config& config() {
  static const Config* read_once = new Config(read_config());  // never destroyed: workers may outlive main
  return *read_once;
}

}  // namespace mybackend::device::host
