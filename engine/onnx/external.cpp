#include "onnx/external.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>

#include "onnx/check.h"
#include "samebytes/error.h"

namespace samebytes::onnx {

struct ExternalData::Mapped {
  std::byte* data = nullptr;
  std::size_t size = 0;
  ~Mapped() {
    if (data != nullptr) ::munmap(data, size);
  }
};

std::shared_ptr<ExternalData::Mapped> ExternalData::open(const std::string& location) {
  const std::filesystem::path asked(location);
  std::error_code code;
  const auto folder = std::filesystem::weakly_canonical(folder_.empty() ? "." : folder_, code);
  const auto path = std::filesystem::weakly_canonical(folder / asked, code);
  const auto inside = path.lexically_relative(folder);
  if (has_control(location))
    throw IoError("onnx: the name of external data has a control character: '" + printable(location) + "'",
                  printable(location));
  if (location.empty() || asked.is_absolute() || inside.empty() || *inside.begin() == "..")
    throw IoError("onnx: external data '" + printable(location) + "' lie outside of the model's folder", location);
  if (const auto known = files_.find(path.string()); known != files_.end()) return known->second;
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  const auto fail = [&](const char* what, const char* why) {
    throw IoError(std::string("onnx: cannot ") + what + " the external data '" + location + "': " + why, path.string());
  };
  if (file < 0) fail("open", std::strerror(errno));
  struct stat status {};
  auto mapped = std::make_shared<Mapped>();
  const bool is_file = ::fstat(file, &status) == 0 && S_ISREG(status.st_mode);
  if (is_file && status.st_size > 0) {
    mapped->size = static_cast<std::size_t>(status.st_size);
    // Private pages: a device may write where it says it only reads.
    void* const data = ::mmap(nullptr, mapped->size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE, file, 0);
    if (data != MAP_FAILED) mapped->data = static_cast<std::byte*>(data);
  }
  const int error = errno;
  ::close(file);
  if (!is_file) fail("map", "it is no regular file");
  if (mapped->size > 0 && mapped->data == nullptr) fail("map", std::strerror(error));
  files_[path.string()] = mapped;
  bytes_ += mapped->size;
  return mapped;
}

Item ExternalData::item(const ::onnx::TensorProto& proto) {
  if (proto.data_location() != ::onnx::TensorProto::EXTERNAL) return item_of(tensor_of(proto));
  Tensor tensor{static_cast<Type>(proto.data_type()), {proto.dims().begin(), proto.dims().end()}, {}};
  if (proto.data_type() < 0 || proto.data_type() > 255 || bytes_of(tensor.type) == 0)
    throw ArgumentError("onnx: tensor '" + printable(proto.name()) + "' has an element type that is not supported");
  const std::size_t bytes = static_cast<std::size_t>(count(tensor.sizes)) * bytes_of(tensor.type);
  std::string location;
  std::size_t offset = 0, length = bytes;
  for (const auto& entry : proto.external_data()) {
    if (entry.key() == "location") location = entry.value();
    std::size_t* const number = entry.key() == "offset" ? &offset : entry.key() == "length" ? &length : nullptr;
    if (number == nullptr) continue;
    const char* const end = entry.value().data() + entry.value().size();
    if (const auto read = std::from_chars(entry.value().data(), end, *number);
        read.ec != std::errc{} || read.ptr != end)
      throw IoError("onnx: tensor '" + printable(proto.name()) + "': " + entry.key() + " is not a number", location);
  }
  const auto mapped = open(location);
  if (length != bytes || offset > mapped->size || length > mapped->size - offset)
    throw IoError("onnx: tensor '" + printable(proto.name()) + "' wants " + std::to_string(bytes) + " bytes at " +
                      std::to_string(offset) + " of '" + location + "', which has " + std::to_string(mapped->size) +
                      "; the file says " + std::to_string(length),
                  location, static_cast<std::int64_t>(offset));
  if (is_floating(tensor.type) && bytes > 0 && offset % bytes_of(tensor.type) == 0)
    return item_of(adopt(mapped->data + offset, shape_of(tensor.sizes), dtype_of(tensor.type), [mapped] {}));
  copied_ += bytes;
  if (copied_ > 2 * bytes_)
    throw IoError("onnx: tensors of '" + location + "' lie over each other: they have more bytes than twice the file",
                  location);
  tensor.bytes.assign(mapped->data + offset, mapped->data + offset + bytes);
  return item_of(std::move(tensor));
}

namespace {

std::string other_type(Type expected, Type given) {
  return "expected " + name_of(expected) + ", got " + name_of(given) +
         "; convert the values first, as NumPy's astype does";
}

}  // namespace

Item bound(const ::onnx::ValueInfoProto& input, const Value& value, std::map<std::string, std::int64_t>& symbols) {
  const std::string where = "onnx: input '" + input.name() + "': ";
  if (!input.type().has_tensor_type()) throw ArgumentError(where + "sequences, maps and options are not supported");
  const auto& expected = input.type().tensor_type();
  const Type type =
      expected.elem_type() < 0 || expected.elem_type() > 255 ? Type::none : static_cast<Type>(expected.elem_type());
  if (bytes_of(type) == 0) throw ArgumentError(where + "its element type is not supported");
  Item item;
  if (const Array* array = std::get_if<Array>(&value)) {
    const Type given = type_of(array->dtype());
    if (given != type && (is_floating(given) || is_floating(type)))
      throw ArgumentError(where + other_type(type, given));
    item = item_of(*array, type);
  } else {
    const Tensor& tensor = std::get<Tensor>(value);
    if (tensor.type != type) throw ArgumentError(where + other_type(type, tensor.type));
    if (tensor.bytes.size() != static_cast<std::size_t>(count(tensor.sizes)) * bytes_of(type))
      throw ArgumentError(where + "its bytes do not match its sizes");
    item = item_of(tensor);
  }
  if (!expected.has_shape()) return item;
  const Sizes sizes = sizes_of(item);
  if (static_cast<int>(sizes.size()) != expected.shape().dim_size())
    throw ArgumentError(where + "expected rank " + std::to_string(expected.shape().dim_size()) + ", got " +
                        std::to_string(sizes.size()));
  for (int i = 0; i < expected.shape().dim_size(); ++i) {
    const auto& dim = expected.shape().dim(i);
    const std::int64_t size = sizes[static_cast<std::size_t>(i)];
    std::int64_t wanted = size;
    if (dim.has_dim_value() && dim.dim_value() >= 0)  // some exporters write -1 for an open size
      wanted = dim.dim_value();
    else if (!dim.dim_param().empty() && dim.dim_param() != "?")  // which some exporters write for any size
      wanted = symbols.emplace(dim.dim_param(), size).first->second;
    if (wanted != size)
      throw ArgumentError(where + "axis " + std::to_string(i) + " has size " + std::to_string(size) + ", expected " +
                          std::to_string(wanted) + (dim.dim_param().empty() ? "" : " ('" + dim.dim_param() + "')"));
  }
  return item;
}

}  // namespace samebytes::onnx
