//! Changes of names that are not durable yet.

use super::Ino;

#[derive(Clone, Debug)]
pub(super) enum NameOp {
    Link { dir: Ino, name: String, ino: Ino },
    Unlink { dir: Ino, name: String, ino: Ino },
    Rename { from_dir: Ino, from: String, to_dir: Ino, to: String, ino: Ino },
}

impl NameOp {
    pub fn touches(&self, at: Ino) -> bool {
        match self {
            Self::Link { dir, .. } | Self::Unlink { dir, .. } => *dir == at,
            Self::Rename { from_dir, to_dir, .. } => *from_dir == at || *to_dir == at,
        }
    }

    pub fn ino(&self) -> Ino {
        match self {
            Self::Link { ino, .. } | Self::Unlink { ino, .. } | Self::Rename { ino, .. } => *ino,
        }
    }

    /// The names that it sets or clears.
    pub fn places(&self) -> Vec<(Ino, &str)> {
        match self {
            Self::Link { dir, name, .. } | Self::Unlink { dir, name, .. } => vec![(*dir, name)],
            Self::Rename { from_dir, from, to_dir, to, .. } => {
                vec![(*from_dir, from), (*to_dir, to)]
            }
        }
    }

    /// What is left of it once `newer` is durable: journals keep the order of changes to one name.
    pub fn behind(self, newer: &Self) -> Option<Self> {
        let newer = newer.places();
        let settled = |dir: Ino, name: &str| newer.contains(&(dir, name));
        match self {
            Self::Link { dir, ref name, .. } | Self::Unlink { dir, ref name, .. } => {
                (!settled(dir, name)).then_some(self)
            }
            Self::Rename { from_dir, from, to_dir, to, ino } => {
                match (settled(from_dir, &from), settled(to_dir, &to)) {
                    (false, false) => Some(Self::Rename { from_dir, from, to_dir, to, ino }),
                    (true, false) => Some(Self::Link { dir: to_dir, name: to, ino }),
                    (false, true) => Some(Self::Unlink { dir: from_dir, name: from, ino }),
                    (true, true) => None,
                }
            }
        }
    }
}
