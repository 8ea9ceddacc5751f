// Built instead of the others here where SAMEBYTES_ONNX is off.
#include "core/missing_part.h"
#include "samebytes/onnx.h"

namespace samebytes::onnx {
namespace {

[[noreturn]] void refuse() {
  detail::throw_missing("onnx", "ONNX", "SAMEBYTES_ONNX", "packages libonnx-dev and libprotobuf-dev");
}

}  // namespace

struct Model::File {};

Model::Recorded::Recorded() = default;
Model::Recorded::Recorded(const Recorded&) {}
Model::Recorded& Model::Recorded::operator=(const Recorded&) = default;

const std::vector<std::string>& Model::inputs() const { refuse(); }
const std::vector<std::string>& Model::outputs() const { refuse(); }
Summary Model::summary() const { refuse(); }
Summary read_summary(const std::string& /*path*/) { refuse(); }
Head Model::head() const { refuse(); }
void Model::replace_head(std::int64_t /*classes*/) { refuse(); }
std::string name_of(Type /*type*/) { refuse(); }
std::map<std::string, Value> Model::run(const std::map<std::string, Value>& /*inputs*/) { refuse(); }
Array Model::forward(const Array& /*x*/) { refuse(); }
void Model::visit(nn::Visitor& /*visitor*/) {}
Model load(const std::string& /*path*/, const LoadOptions& /*options*/) { refuse(); }
void save(const std::string& /*path*/, nn::Module& /*module*/, const Array& /*example*/,
          const SaveOptions& /*options*/) {
  refuse();
}
void save(const std::string& /*path*/, const Model& /*model*/) { refuse(); }
void save(const std::string& /*path*/, const Traced& /*function*/, std::span<const Array> /*examples*/,
          const std::vector<nn::NamedArray>& /*state*/, const SaveOptions& /*options*/) {
  refuse();
}

}  // namespace samebytes::onnx
