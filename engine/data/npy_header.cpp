#include "data/npy_header.h"

#include <optional>
#include <string_view>

#include "core/io_error.h"
#include "core/npy_header.h"

namespace samebytes::detail {
namespace {

struct Type {
  Dtype dtype;
  std::size_t width;   // bytes of one value in the file
  char kind;           // numpy's letter
  bool widen = false;  // an integer that becomes i32
};

std::optional<Type> type_of(std::string_view descr) {
  if (!descr.empty() && (descr.front() == '<' || descr.front() == '>' || descr.front() == '|' || descr.front() == '='))
    descr.remove_prefix(1);
  if (descr == "f4") return Type{f32, 4, 'f'};
  if (descr == "f2") return Type{f16, 2, 'f'};
  if (descr == "f8") return Type{f64, 8, 'f'};
  if (descr == "i4") return Type{i32, 4, 'i'};
  if (descr == "u1") return Type{u8, 1, 'u'};
  if (descr == "b1") return Type{bool_, 1, 'b'};
  if (descr == "V2" || descr == "bfloat16") return Type{bf16, 2, 'V'};
  if (descr == "i8") return Type{i64, 8, 'i'};
  if (descr == "i2") return Type{i32, 2, 'i', true};
  if (descr == "i1") return Type{i32, 1, 'i', true};
  if (descr == "u2") return Type{i32, 2, 'u', true};
  return std::nullopt;
}

}  // namespace

NpyLayout read_npy_layout(const std::string& path, std::span<const std::byte> file) {
  NpyHeader header = read_npy_header(path, file);
  const auto begin = static_cast<std::int64_t>(header.begin);
  const std::optional<Type> type = type_of(header.descr);
  if (!type)
    throw_io("npy", path, begin, "a type f4, f2, f8, i4, u1, b1, V2 (bfloat16), i8, i2, i1 or u2",
             "'" + header.descr + "'");
  check_npy_size(path, file, header, type->width);
  const Shape shape = shape_of_sizes("npy", path, begin, header.sizes);
  return {.header = std::move(header),
          .shape = shape,
          .dtype = type->dtype,
          .width = type->width,
          .kind = type->kind,
          .widen = type->widen};
}

}  // namespace samebytes::detail
