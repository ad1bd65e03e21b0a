//! A wheel of Python that carries the programs: `pip install`, then `helenus` and `nodetool`.
//!
//! The layout is that of the binary distribution format: the programs stand in the folder that
//! installers copy to the environment's `bin`, and `RECORD` lists a hash of each file.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest as _, Sha256};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, DateTime, ZipWriter};

use super::VERSION;
use super::files::{self, PLAIN, PROGRAM, Programs};
use crate::machine::{self, Outcome};

/// Until PEP 600 named versions of glibc, tags had names of their own; this one is enough of it.
const OLDEST: (u32, u32) = (2, 17);

pub fn make(programs: &Programs, into: &Path) -> Outcome<PathBuf> {
    let (major, minor) = programs.glibc_numbers.max(OLDEST);
    let tag = format!("py3-none-manylinux_{major}_{minor}_{}", std::env::consts::ARCH);
    let info = format!("helenus-{VERSION}.dist-info");
    let scripts = format!("helenus-{VERSION}.data/scripts");
    let wheel =
        format!("Wheel-Version: 1.0\nGenerator: xtask\nRoot-Is-Purelib: false\nTag: {tag}\n");
    let metadata = files::filled("wheel/METADATA", &[("VERSION", VERSION)])?;
    let license = fs::read(machine::root().join("LICENSE"))?;
    let all: [(String, u32, &[u8]); 5] = [
        (format!("{scripts}/helenus"), PROGRAM, &programs.helenus),
        (format!("{scripts}/nodetool"), PROGRAM, &programs.nodetool),
        (format!("{info}/METADATA"), PLAIN, metadata.as_bytes()),
        (format!("{info}/WHEEL"), PLAIN, wheel.as_bytes()),
        (format!("{info}/licenses/LICENSE"), PLAIN, &license),
    ];
    let record = format!("{info}/RECORD");
    let mut lines: String = all.iter().map(|(name, _, bytes)| line(name, bytes)).collect();
    lines.push_str(&format!("{record},,\n"));

    let path = into.join(format!("helenus-{VERSION}-{tag}.whl"));
    let mut zip = ZipWriter::new(fs::File::create(&path)?);
    let options = SimpleFileOptions::default()
        .compression_method(CompressionMethod::Deflated)
        .last_modified_time(DateTime::default());
    let mut add = |name: &str, mode: u32, bytes: &[u8]| -> Outcome {
        zip.start_file(name, options.unix_permissions(mode))?;
        Ok(zip.write_all(bytes)?)
    };
    for (name, mode, bytes) in &all {
        add(name, *mode, bytes)?;
    }
    add(&record, PLAIN, lines.as_bytes())?;
    zip.finish()?;
    Ok(path)
}

/// A line of `RECORD`: name, hash, size.
fn line(name: &str, bytes: &[u8]) -> String {
    let hash = URL_SAFE_NO_PAD.encode(Sha256::digest(bytes));
    format!("{name},sha256={hash},{}\n", bytes.len())
}

#[cfg(test)]
mod tests {
    use super::line;

    #[test]
    fn a_line_has_the_hash_as_installers_compute_it() {
        let empty = "a,sha256=47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU,0\n";
        assert_eq!(line("a", b""), empty);
    }
}
