// Adopted memory with strides, and the bytes of views with gaps.
#include "samebytes/interop/strided.h"

#include <algorithm>

#include "graph/launch.h"
#include "graph/overwrite.h"
#include "ops/pointwise.h"

namespace samebytes {

namespace detail {
namespace {

// A view of adopted bytes that no handle shows as a whole.
class AdoptedView final : public Op {
 public:
  AdoptedView() : Op({.takes_strides = InputSet::all()}) {}
  std::string_view name() const override { return "adopt_strided"; }
  void launch(Launch&) const override { throw Error("view: never launched"); }
};

}  // namespace
}  // namespace detail

}  // namespace samebytes

namespace samebytes::interop {

Array adopt_strided(void* pointer, const Shape& shape, std::span<const std::int64_t> strides, Dtype dtype,
                    std::function<void()> deleter, Adoption* verdict) {
  if (!strides.empty() && std::ssize(strides) != shape.rank())
    throw ArgumentError("adopt_strided: expected " + std::to_string(shape.rank()) + " strides for shape " +
                        shape.to_string() + ", got " + std::to_string(strides.size()));
  detail::Strides own = detail::dense_strides(shape);
  bool is_dense = true;
  std::int64_t before = 0, after = 0;
  for (int axis = 0; axis < shape.rank() && !strides.empty() && shape.size() > 0; ++axis) {
    const auto i = static_cast<std::size_t>(axis);
    if (shape[axis] == 1) continue;
    is_dense = is_dense && strides[i] == own[i];
    own[i] = strides[i];
    std::int64_t reach = 0, *const side = strides[i] < 0 ? &before : &after;
    if (__builtin_mul_overflow(strides[i], shape[axis] - 1, &reach) || __builtin_add_overflow(*side, reach, side) ||
        before < -Shape::kMostElements || after > Shape::kMostElements)
      throw ArgumentError("adopt_strided: the strides of shape " + shape.to_string() + " reach too far");
  }
  if (is_dense) return adopt(pointer, shape, dtype, std::move(deleter), verdict);
  auto* const first = static_cast<char*>(pointer) + before * static_cast<std::int64_t>(bytes_of(dtype));
  const Array all = adopt(first, Shape{after - before + 1}, dtype, std::move(deleter), verdict);
  static const auto op = detail::make_op<detail::AdoptedView>();
  return detail::make_view(op, all, shape, -before, own);
}

struct StridedView::State {
  detail::StoragePtr storage;
  detail::ContextPtr context;  // keeps the runtime of the storage alive
  std::uint64_t id = 0;
  ~State() {
    if (id != 0) storage->release_host(id);
  }
};

StridedView::StridedView(const Array& array, HostAccess access, const char* file, int line) {
  if (!array.defined()) throw ArgumentError("host: an empty array handle was used");
  const detail::NodePtr& node = array.node();
  Array(detail::base_of(node)).eval();
  const bool is_view = node->is_view;
  const detail::Strides own = is_view ? node->strides : detail::dense_strides(node->shape);
  strides_.assign(own.begin(), own.begin() + node->shape.rank());
  if (node->shape.size() == 0) return;
  const bool writes = access == HostAccess::write;
  const detail::Node& base = node->base();
  if (writes && base.is_read_only)
    throw ArgumentError("mutable_host: " + detail::describe(array) +
                        " shows rows of a data set, which others read; write to a copy: copy(a)");
  if (writes) {
    const std::lock_guard lock(node->context->mutex);
    detail::before_foreign_write(detail::base_of(node), file, line);
  }
  std::int64_t before = 0, after = 0;
  for (int axis = 0; axis < node->shape.rank(); ++axis) {
    const std::int64_t reach = strides_[static_cast<std::size_t>(axis)] * (node->shape[axis] - 1);
    (reach < 0 ? before : after) += reach;
  }
  const std::size_t width = bytes_of(node->dtype);
  const std::int64_t zero = base.offset + (is_view ? node->offset : 0);
  state_ = std::make_unique<State>();
  state_->storage = base.storage;
  state_->context = node->context;
  void* const bytes =
      base.storage->acquire_host(writes, static_cast<std::size_t>(zero + before) * width,
                                 static_cast<std::size_t>(after - before + 1) * width, file, line, &state_->id);
  data_ = static_cast<char*>(bytes) + static_cast<std::size_t>(zero) * width;
}

StridedView::StridedView(StridedView&&) noexcept = default;
StridedView& StridedView::operator=(StridedView&&) noexcept = default;
StridedView::~StridedView() = default;

}  // namespace samebytes::interop
