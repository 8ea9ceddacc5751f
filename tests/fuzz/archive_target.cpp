#include <archive.h>
#include <archive_entry.h>

#include "data/archive.h"
#include "fuzz/target.h"
#include "support/files.h"

namespace samebytes::fuzz {
namespace {

void write(const std::string& path, int (*set_format)(archive*), int (*add_filter)(archive*)) {
  archive* file = archive_write_new();
  set_format(file);
  add_filter(file);
  archive_write_open_filename(file, path.c_str());
  for (const std::string name : {"0_ann_1.wav", "folder/1_bob_0.wav"}) {
    archive_entry* entry = archive_entry_new();
    archive_entry_set_pathname(entry, name.c_str());
    archive_entry_set_size(entry, 6);
    archive_entry_set_filetype(entry, AE_IFREG);
    archive_entry_set_perm(entry, 0644);
    archive_write_header(file, entry);
    archive_write_data(file, "abcdef", 6);
    archive_entry_free(entry);
  }
  archive_write_close(file);
  archive_write_free(file);
}

const Added added({
    .name = "archive",
    .file = "x",
    .make =
        [](const std::string& folder) {
          write(folder + "/a.tar", archive_write_set_format_pax_restricted, archive_write_add_filter_none);
          write(folder + "/a.tar.gz", archive_write_set_format_ustar, archive_write_add_filter_gzip);
          write(folder + "/a.zip", archive_write_set_format_zip, archive_write_add_filter_none);
        },
    .read = [](const std::string& path) { detail::read_archive("fuzz", path); },
    .words = {"ustar", "PK\x01\x02", "PK\x03\x04", "PK\x05\x06", "../", "/abs"},
    .growth = 16384,
});

}  // namespace
}  // namespace samebytes::fuzz
