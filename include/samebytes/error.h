// The exceptions of Samebytes. The library throws these and prints nothing.
// A message says what failed, what was expected, what it got, and what to do.
#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>

namespace samebytes {

// Base of everything that Samebytes throws.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// The caller passed a wrong argument. The call that got it throws, before it has any effect.
class ArgumentError : public Error {
 public:
  using Error::Error;
};

// An allocation does not fit under the limit. The engine stays usable.
class OutOfMemory : public Error {
 public:
  OutOfMemory(const std::string& message, std::size_t need_bytes, std::size_t budget_bytes)
      : Error(message), need_(need_bytes), budget_(budget_bytes) {}
  std::size_t need() const { return need_; }      // bytes requested
  std::size_t budget() const { return budget_; }  // total bytes allowed

 private:
  std::size_t need_;
  std::size_t budget_;
};

// An OpenCL call failed, or no device is available.
class DeviceError : public Error {
 public:
  DeviceError(const std::string& message, std::string call, std::string status, std::string device)
      : Error(message), call_(std::move(call)), status_(std::move(status)), device_(std::move(device)) {}
  // Both are empty where no OpenCL call failed: what the host did for a device threw, or the device was given up.
  const std::string& call() const { return call_; }      // "clEnqueueNDRangeKernel"
  const std::string& status() const { return status_; }  // "CL_OUT_OF_RESOURCES"
  const std::string& device() const { return device_; }  // empty if no device was involved

 private:
  std::string call_;
  std::string status_;
  std::string device_;
};

// A kernel did not build.
class BuildError : public Error {
 public:
  BuildError(const std::string& message, std::string file, std::string defines, std::string log)
      : Error(message), file_(std::move(file)), defines_(std::move(defines)), log_(std::move(log)) {}
  const std::string& file() const { return file_; }        // kernel file or generated program
  const std::string& defines() const { return defines_; }  // "-DREAL=float ..."
  const std::string& log() const { return log_; }          // the compiler's complete log

 private:
  std::string file_;
  std::string defines_;
  std::string log_;
};

// A file is missing, damaged, or cannot be written.
class IoError : public Error {
 public:
  IoError(const std::string& message, std::string path, std::int64_t offset = -1)
      : Error(message), path_(std::move(path)), offset_(offset) {}
  const std::string& path() const { return path_; }
  std::int64_t offset() const { return offset_; }  // byte offset of the fault, -1 if there is none

 private:
  std::string path_;
  std::int64_t offset_;
};

}  // namespace samebytes
