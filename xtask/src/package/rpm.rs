//! A package of RPM. Its files are not compressed: the crate's ways to compress would change the
//! features that the node's own dependencies are built with.

use std::fs;
use std::path::{Path, PathBuf};

use rpm::{
    BuildConfig, CompressionType, Dependency, FileMode, FileOptions, FileOptionsBuilder,
    PackageBuilder, Timestamp,
};

use super::VERSION;
use super::files::{self, Content, Entry, PLAIN, Programs};
use super::linux;
use crate::machine::{self, Outcome};

const USER: &str = "cassandra";

pub fn make(programs: &Programs, into: &Path) -> Outcome<PathBuf> {
    let arch = std::env::consts::ARCH;
    let mut entries = linux::entries(programs)?;
    let license = fs::read(machine::root().join("LICENSE"))?;
    entries.push(Entry::file("usr/share/licenses/helenus/LICENSE", PLAIN, license));
    let time = Timestamp(u32::try_from(programs.time)?);
    let config = BuildConfig::v4().compression(CompressionType::None).source_date(time);
    let mut package = PackageBuilder::new("helenus", VERSION, "Apache-2.0", arch, linux::SUMMARY);
    package.using_config(config).description(linux::DESCRIPTION).build_host("localhost");
    let script = |name: &str| -> Outcome<String> {
        Ok(String::from_utf8(files::packaged(&format!("linux/{name}"))?)?)
    };
    package
        .requires(Dependency::greater_eq("glibc", programs.glibc.as_str()))
        .requires(Dependency::any("shadow-utils"))
        .provides(Dependency::eq("cassandra", VERSION))
        .conflicts(Dependency::any("cassandra"))
        .post_install_script(script("postinst")?)
        .pre_uninstall_script(script("prerm")?)
        .post_uninstall_script(script("postrm")?);
    for entry in &entries {
        add(&mut package, entry)?;
    }
    let path = into.join(format!("helenus-{VERSION}-1.{arch}.rpm"));
    package.build()?.write_file(&path)?;
    Ok(path)
}

fn add(package: &mut PackageBuilder, entry: &Entry) -> Outcome {
    let (path, bits) = (format!("/{}", entry.path), u16::try_from(entry.mode)?);
    let owned = |options: FileOptionsBuilder| match entry.is_of_node {
        true => options.user(USER).group(USER),
        false => options,
    };
    match &entry.content {
        Content::Folder => {
            package.with_dir_entry(owned(FileOptions::dir(path)).mode(FileMode::dir(bits)))?;
        }
        Content::Link(target) => {
            package.with_symlink(FileOptions::symlink(path, target.as_str()))?;
        }
        Content::File(bytes) => {
            let mut options = owned(FileOptions::new(path)).mode(FileMode::regular(bits));
            if entry.path.starts_with("etc/") {
                options = options.config().noreplace();
            }
            package.with_file_contents(bytes.as_slice(), options)?;
        }
    }
    Ok(())
}
