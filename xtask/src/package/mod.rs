//! `cargo xtask package`: what is installed, of each kind, from built programs and the files of
//! `packaging/`. Packages come out the same byte by byte for the same programs and commit.

mod deb;
mod elf;
mod files;
mod image;
mod linux;
mod rpm;
mod tarball;
mod wheel;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::machine::{self, Outcome};
use files::Programs;

const HELP: &str = "\
cargo xtask package [KIND...] [--from DIR]
  makes packages of these kinds, or of all, in target/package: tarball wheel deb rpm image
  of a release build, or of the programs `helenus` and `nodetool` in DIR
  image needs mmdebstrap and root, and reaches a mirror of Debian (apt-get install mmdebstrap)";

/// The version of all packages.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// A kind of package.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Tarball,
    Wheel,
    Deb,
    Rpm,
    Image,
}

impl Kind {
    /// Quickest first.
    pub const ALL: [Self; 5] = [Self::Tarball, Self::Wheel, Self::Deb, Self::Rpm, Self::Image];

    fn name(self) -> &'static str {
        match self {
            Self::Tarball => "tarball",
            Self::Wheel => "wheel",
            Self::Deb => "deb",
            Self::Rpm => "rpm",
            Self::Image => "image",
        }
    }

    fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    fn make(self, programs: &Programs, into: &Path) -> Outcome<PathBuf> {
        match self {
            Self::Tarball => tarball::make(programs, into),
            Self::Wheel => wheel::make(programs, into),
            Self::Deb => deb::make(programs, into),
            Self::Rpm => rpm::make(programs, into),
            Self::Image => image::make(programs, into),
        }
    }
}

/// `package [KIND...] [--from DIR]`
pub fn run(args: &[String]) -> Outcome {
    let (mut kinds, mut from) = (Vec::new(), None);
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--help" => {
                println!("{HELP}");
                return Ok(());
            }
            "--from" => from = Some(PathBuf::from(args.next().ok_or("--from which folder?")?)),
            name => {
                let kind = Kind::of_name(name);
                kinds.push(kind.ok_or_else(|| format!("no kind {name} of packages\n{HELP}"))?);
            }
        }
    }
    let from = from.map_or_else(released, Ok)?;
    let kinds = if kinds.is_empty() { Kind::ALL.to_vec() } else { kinds };
    make(&from, &kinds, &folder()).map(drop)
}

/// Where packages go.
fn folder() -> PathBuf {
    machine::target().join("package")
}

/// Makes packages of the programs in a folder; where each is.
pub fn make(from: &Path, kinds: &[Kind], into: &Path) -> Outcome<Vec<PathBuf>> {
    fs::create_dir_all(into)?;
    let programs = Programs::of(from, into)?;
    println!("{:>12}  helenus, nodetool", sizes(&[&programs.helenus, &programs.nodetool]));
    println!("{:>12}  needs glibc {} or later", "", programs.glibc);
    let mut made = Vec::new();
    for kind in kinds {
        let path = kind.make(&programs, into)?;
        let size = megabytes(fs::metadata(&path)?.len());
        println!("{size:>12}  {}", path.display());
        made.push(path);
    }
    Ok(made)
}

/// Builds the programs as they are released; where they are.
fn released() -> Outcome<PathBuf> {
    let mut build = Command::new("cargo");
    build.args(["build", "--release", "--package", "helenus", "--package", "nodetool"]);
    machine::run(build.current_dir(machine::root()))?;
    Ok(machine::target().join("release"))
}

fn sizes(programs: &[&Vec<u8>]) -> String {
    megabytes(programs.iter().map(|program| program.len() as u64).sum())
}

fn megabytes(bytes: u64) -> String {
    const MB: u64 = 1_000_000;
    format!("{}.{} MB", bytes / MB, bytes % MB * 10 / MB)
}
