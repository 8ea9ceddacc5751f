#include "onnx/call.h"

#include <cstring>

#include "onnx/check.h"
#include "onnx/registry.h"
#include "samebytes/error.h"

namespace samebytes::onnx {

void Call::refuse(const std::string& why) const { throw ArgumentError("onnx: " + name + ": " + why); }

Array Call::floating(std::size_t i) const {
  if (!is_floating(i))
    refuse("input " + std::to_string(i) + " is " + name_of(type(i)) + "; only floating is supported");
  return array(i);
}

std::int64_t Call::integer(const std::string& key, std::int64_t otherwise) const {
  const auto at = attributes.find(key);
  return at == attributes.end() ? otherwise : at->second->i();
}

Type Call::element_type(const std::string& key, Type otherwise) const {
  const std::int64_t asked = integer(key, static_cast<std::int64_t>(otherwise));
  if (asked == static_cast<std::int64_t>(otherwise)) return otherwise;
  if (asked < 0 || asked > 255 || bytes_of(static_cast<Type>(asked)) == 0)
    refuse(key + " is " + std::to_string(asked) + ", which is no type of plain numbers or bools");
  return static_cast<Type>(asked);
}

double Call::real(const std::string& key, double otherwise) const {
  const auto at = attributes.find(key);
  return at == attributes.end() ? otherwise : static_cast<double>(at->second->f());
}

std::string Call::text(const std::string& key, const std::string& otherwise) const {
  const auto at = attributes.find(key);
  return at == attributes.end() ? otherwise : at->second->s();
}

std::vector<std::int64_t> Call::integers(const std::string& key, std::vector<std::int64_t> otherwise) const {
  const auto at = attributes.find(key);
  if (at == attributes.end()) return otherwise;
  return {at->second->ints().begin(), at->second->ints().end()};
}

std::vector<double> Call::reals(const std::string& key) const {
  const auto at = attributes.find(key);
  if (at == attributes.end()) return {};
  return {at->second->floats().begin(), at->second->floats().end()};
}

std::vector<std::string> Call::texts(const std::string& key) const {
  const auto at = attributes.find(key);
  if (at == attributes.end()) return {};
  return {at->second->strings().begin(), at->second->strings().end()};
}

int Call::axis(std::int64_t axis, int rank) const {
  if (axis < -rank || axis >= rank)
    refuse("axis " + std::to_string(axis) + " is outside of rank " + std::to_string(rank));
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

namespace {

template <class Values>
void put(Tensor& tensor, const Values& values) {
  const std::size_t width = bytes_of(tensor.type);
  if (static_cast<std::size_t>(values.size()) != tensor.bytes.size() / width)
    throw ArgumentError("onnx: a tensor has " + std::to_string(values.size()) + " values, its sizes want " +
                        std::to_string(tensor.bytes.size() / width));
  for (int i = 0; i < values.size(); ++i)
    std::memcpy(tensor.bytes.data() + static_cast<std::size_t>(i) * width, &values[i], width);
}

}  // namespace

Tensor tensor_of(const ::onnx::TensorProto& proto) {
  Tensor tensor{static_cast<Type>(proto.data_type()), {proto.dims().begin(), proto.dims().end()}, {}};
  if (proto.data_type() < 0 || proto.data_type() > 255 || bytes_of(tensor.type) == 0)
    throw ArgumentError("onnx: tensor '" + printable(proto.name()) + "' has the element type " +
                        std::to_string(proto.data_type()) + "; plain numbers and bools are supported");
  const auto n = static_cast<std::size_t>(count(tensor.sizes));
  if (proto.has_raw_data()) {
    if (proto.raw_data().size() / bytes_of(tensor.type) != n || proto.raw_data().size() % bytes_of(tensor.type) != 0)
      throw ArgumentError("onnx: tensor '" + printable(proto.name()) + "' has " +
                          std::to_string(proto.raw_data().size()) + " bytes, its sizes want " + std::to_string(n) +
                          " values");
    const auto* first = reinterpret_cast<const std::byte*>(proto.raw_data().data());
    tensor.bytes.assign(first, first + proto.raw_data().size());
    return tensor;
  }
  std::size_t values = 0;
  for (const int count : {proto.float_data_size(), proto.int32_data_size(), proto.int64_data_size(),
                          proto.double_data_size(), proto.uint64_data_size()})
    values += static_cast<std::size_t>(count);
  if (values != n)
    throw ArgumentError("onnx: tensor '" + printable(proto.name()) + "' has " + std::to_string(values) +
                        " values, its sizes want " + std::to_string(n));
  tensor.bytes.resize(n * bytes_of(tensor.type));
  switch (tensor.type) {
    case Type::f32: put(tensor, proto.float_data()); break;
    case Type::f64: put(tensor, proto.double_data()); break;
    case Type::i64: put(tensor, proto.int64_data()); break;
    case Type::u32:
    case Type::u64: put(tensor, proto.uint64_data()); break;
    default: put(tensor, proto.int32_data()); break;
  }
  return tensor;
}

const Registry& registry() {
  static const Registry all = [] {
    Registry made;
    add_elementwise(made);
    add_integers(made);
    add_shapes(made);
    add_indexing(made);
    add_reductions(made);
    add_images(made);
    add_pooling(made);
    add_resizing(made);
    add_grids(made);
    add_norms(made);
    add_recurrent(made);
    add_trigonometry(made);
    add_quantised(made);
    add_scatter(made);
    add_attention(made);
    add_states(made);
    add_signal(made);
    add_detection(made);
    add_sets(made);
    add_random(made);
    add_optimizers(made);
    add_linear_algebra(made);
    add_losses(made);
    add_fused(made);
    add_int8(made);
    return made;
  }();
  return all;
}

}  // namespace samebytes::onnx
