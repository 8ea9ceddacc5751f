#include "text/template.h"

#include <string>

namespace samebytes::detail {
namespace {

// ["[SEP]", 102]
std::int32_t id_of(const JsonPart& part, const char* key) {
  const nlohmann::json& pair = part.array(key);
  if (pair.size() != 2 || !pair[1].is_number_unsigned() || pair[1].get<std::uint64_t>() > INT32_MAX)
    part.fail(key, "a token and its number", &pair);
  return pair[1].get<std::int32_t>();
}

}  // namespace

void Template::read(const JsonPart& part, bool is_member) {
  const std::string type = part.type();
  if (type == "Sequence" && !is_member) {
    std::size_t i = 0;
    for (const nlohmann::json& member : part.array("processors"))
      read(JsonPart(member, part.path(), part.place_of("processors") + "[" + std::to_string(i++) + "]"), true);
    return;
  }
  if (type == "ByteLevel") return;  // of offsets alone
  if (is_read_) part.fail_type("ByteLevel beside one template");
  is_read_ = true;
  if (type == "TemplateProcessing") {
    read_template(part);
  } else if (type == "BertProcessing") {
    const std::int32_t cls = id_of(part, "cls"), sep = id_of(part, "sep");
    single_ = {{-1, {cls}, 0}, {0, {}, 0}, {-1, {sep}, 0}};
    pair_ = {{-1, {cls}, 0}, {0, {}, 0}, {-1, {sep}, 0}, {1, {}, 1}, {-1, {sep}, 1}};
    has_plain_types_ = true;
  } else if (type == "RobertaProcessing") {
    const std::int32_t cls = id_of(part, "cls"), sep = id_of(part, "sep");
    single_ = {{-1, {cls}, 0}, {0, {}, 0}, {-1, {sep}, 0}};
    pair_ = {{-1, {cls}, 0}, {0, {}, 0}, {-1, {sep, sep}, 0}, {1, {}, 0}, {-1, {sep}, 0}};
    plain_types_[1] = 0;
    has_plain_types_ = true;
  } else {
    part.fail_type("TemplateProcessing, BertProcessing, RobertaProcessing, ByteLevel or one Sequence of them");
  }
}

void Template::read_template(const JsonPart& part) {
  single_ = read_list(part, "single");
  pair_ = read_list(part, "pair");
}

std::vector<TemplatePart> Template::read_list(const JsonPart& part, const char* key) const {
  std::vector<TemplatePart> parts;
  std::size_t i = 0;
  for (const nlohmann::json& entry : part.array(key)) {
    const JsonPart piece(entry, part.path(), part.place_of(key) + "[" + std::to_string(i++) + "]");
    const bool is_text = piece.find("Sequence") != nullptr;
    const JsonPart inner = piece.part(is_text ? "Sequence" : "SpecialToken");
    TemplatePart made;
    made.type = static_cast<std::int32_t>(inner.integer("type_id", 0, INT32_MAX, 0));
    if (is_text) {
      const std::string& name = inner.text("id");
      if (name != "A" && name != "B") inner.fail("id", "A or B", inner.find("id"));
      made.text = name == "A" ? 0 : 1;
    } else {
      const JsonPart tokens = part.part("special_tokens").part(inner.text("id").c_str());
      for (const nlohmann::json& id : tokens.array("ids")) {
        if (!id.is_number_unsigned() || id.get<std::uint64_t>() > INT32_MAX)
          tokens.fail("ids", "numbers of tokens", &id);
        made.ids.push_back(id.get<std::int32_t>());
      }
    }
    parts.push_back(std::move(made));
  }
  return parts;
}

}  // namespace samebytes::detail
