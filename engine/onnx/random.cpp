// Random numbers: the engine's own, or, where a node has a seed, the same ones at each run.
#include <bit>

#include "onnx/registry.h"
#include "samebytes/error.h"
#include "samebytes/ops.h"

namespace samebytes::onnx {
namespace {

RandomKey key_of(const Call& call, RandomDomain domain = RandomDomain::arrays) {
  if (!call.has_attribute("seed")) return next_random_key(domain);
  return {std::bit_cast<std::uint32_t>(static_cast<float>(call.real("seed", 0.0))), 0, domain};
}

// Sizes of an attribute, or those of the input.
Outputs drawn(const Call& call) {
  const bool is_like = call.op.ends_with("Like");
  const Type type = call.element_type("dtype", is_like && call.is_floating() ? call.type() : Type::f32);
  if (!is_floating(type)) call.refuse("the element type " + name_of(type) + " is not floating");
  const Shape shape = shape_of(is_like ? call.sizes() : Sizes(call.integers("shape")));
  const Dtype dtype = dtype_of(type);
  if (call.op.starts_with("RandomNormal"))
    return {item_of(normal(shape, call.real("mean", 0.0), call.real("scale", 1.0), dtype, key_of(call)))};
  return {item_of(uniform(shape, call.real("low", 0.0), call.real("high", 1.0), dtype, key_of(call)))};
}

// 1 with the probability that the input has.
Outputs bernoulli(const Call& call) {
  const Array p = call.floating();
  const Type type = call.element_type("dtype", call.type());
  const Array wide = p.dtype() == f64 ? p : astype(p, f32);
  const Array is_one = less(uniform(p.shape(), 0.0, 1.0, wide.dtype(), key_of(call)), wide);
  return {item_of(astype(is_one, dtype_of(type)), type)};
}

// Logarithms of weights [N, C] -> [N, draws] classes, with replacement.
Outputs drawn_classes(const Call& call) {
  const Array logs = call.floating();
  const Type type = call.element_type("dtype", Type::i32);
  if (call.rank() != 2) call.refuse("expected [N, C]");
  if (type != Type::i32 && type != Type::i64) call.refuse("its classes are int32 or int64, not " + name_of(type));
  const Array weights = softmax(logs.dtype() == f64 ? logs : astype(logs, f32));
  const MultinomialOptions options{.samples = call.integer("sample_size", 1), .replacement = true};
  const Array classes = multinomial(weights, options, key_of(call, RandomDomain::sampling));
  return {item_of(classes, type)};
}

}  // namespace

void add_random(Registry& registry) {
  for (const char* op : {"RandomNormal", "RandomUniform", "RandomNormalLike", "RandomUniformLike"})
    registry[op] = drawn;
  registry.insert({{"Bernoulli", bernoulli}, {"Multinomial", drawn_classes}});
}

}  // namespace samebytes::onnx
