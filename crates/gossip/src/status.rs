//! What a node is in the ring: the first word of STATUS (`gms.VersionedValue`).

/// Separates the words of a status.
const DELIMITER: char = ',';

/// What a node is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Status {
    /// It has not said.
    None,
    /// It is about to own tokens.
    Boot,
    /// It is about to own the tokens of another, of that address.
    BootReplace(String),
    /// It owns tokens.
    Normal,
    /// It is about to give its tokens up.
    Leaving,
    /// It gave them up; it may be forgotten after that time, in milliseconds since 1970.
    Left {
        /// That time.
        expires: Option<i64>,
    },
    /// It is about to own another token, that one.
    Moving(Option<i64>),
    /// Another removes it.
    Removing,
    /// Another removed it; as [`Self::Left`].
    Removed {
        /// The time after which it may be forgotten.
        expires: Option<i64>,
    },
    /// It replaces itself, and must not be written to.
    Hibernate,
    /// It said that it would stop.
    Shutdown,
    /// Something else.
    Other(String),
}

impl Status {
    /// What a node publishes that stops.
    pub const SHUTDOWN: &'static str = "shutdown,true";

    /// What a node publishes that takes its own place again, and is not written to.
    pub const HIBERNATE: &'static str = "hibernate,true";

    /// What a node publishes that is about to own tokens, the first of which is told.
    pub fn boot(token: i64) -> String {
        format!("BOOT,{token}")
    }

    /// What a node publishes that is about to take the place of another, of that address.
    pub fn boot_replace(replaced: impl std::fmt::Display) -> String {
        format!("BOOT_REPLACE,{replaced}")
    }

    /// What a node publishes that owns tokens, the first of which is told.
    pub fn normal(token: i64) -> String {
        format!("NORMAL,{token}")
    }

    /// Reads a status.
    pub fn parse(text: &str) -> Self {
        let mut words = text.split(DELIMITER);
        let number = |at: usize| words.clone().nth(at).and_then(|word| word.parse().ok());
        match text.split(DELIMITER).next().unwrap_or_default() {
            "" => Self::None,
            "BOOT" => Self::Boot,
            "BOOT_REPLACE" => {
                Self::BootReplace(words.nth(1).map(str::to_owned).unwrap_or_default())
            }
            "NORMAL" => Self::Normal,
            "LEAVING" => Self::Leaving,
            "LEFT" => Self::Left { expires: number(2) },
            "MOVING" => Self::Moving(number(1)),
            "removing" => Self::Removing,
            "removed" => Self::Removed { expires: number(2) },
            "hibernate" => Self::Hibernate,
            "shutdown" => Self::Shutdown,
            other => Self::Other(other.to_owned()),
        }
    }

    /// What a node publishes that is about to give up its tokens, the first of which is told.
    pub fn leaving(token: i64) -> String {
        format!("LEAVING,{token}")
    }

    /// What a node publishes that is about to own another token, that one.
    pub fn moving(to: i64) -> String {
        format!("MOVING,{to}")
    }

    /// What another publishes of a node that it removes.
    pub fn removing(host: &str) -> String {
        format!("removing,{host}")
    }

    /// What another publishes of a node that it removed.
    pub fn removed(host: &str, expires: i64) -> String {
        format!("removed,{host},{expires}")
    }

    /// What is published of a node that gave up its tokens, one of which is told.
    pub fn left(token: i64, expires: i64) -> String {
        format!("LEFT,{token},{expires}")
    }

    /// Is it never up, whatever signs of life there are?
    pub fn is_dead(&self) -> bool {
        matches!(self, Self::Removing | Self::Removed { .. } | Self::Left { .. } | Self::Hibernate)
    }

    /// Is it about to join?
    pub fn is_joining(&self) -> bool {
        matches!(self, Self::Boot | Self::BootReplace(_))
    }

    /// The time after which it may be forgotten.
    pub fn expires(&self) -> Option<i64> {
        match self {
            Self::Left { expires } | Self::Removed { expires } => *expires,
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses() {
        assert_eq!(Status::parse("NORMAL,-9"), Status::Normal);
        assert_eq!(Status::normal(-9), "NORMAL,-9");
        assert_eq!(Status::parse(&Status::boot(-9)), Status::Boot);
        assert_eq!(Status::parse(&Status::moving(-7)), Status::Moving(Some(-7)));
        assert_eq!(Status::parse("MOVING"), Status::Moving(None));
        assert_eq!(Status::parse(Status::HIBERNATE), Status::Hibernate);
        assert_eq!(Status::parse(&Status::left(5, 77)), Status::Left { expires: Some(77) });
        let removed = Status::removed("host", 88);
        assert_eq!(removed, "removed,host,88");
        assert_eq!(Status::parse(&removed), Status::Removed { expires: Some(88) });
        assert_eq!(Status::parse(&Status::removing("host")), Status::Removing);
        assert_eq!(Status::parse(&Status::leaving(1)), Status::Leaving);
        assert_eq!(
            Status::parse(&Status::boot_replace("127.0.0.1:7000")),
            Status::BootReplace("127.0.0.1:7000".into())
        );
        assert_eq!(Status::parse(Status::SHUTDOWN), Status::Shutdown);
        assert_eq!(Status::parse(""), Status::None);
        assert_eq!(Status::parse("LEFT,5"), Status::Left { expires: None });
        for (text, dead) in [
            ("NORMAL,1", false),
            ("shutdown,true", false),
            ("LEFT,1,2", true),
            ("hibernate,true", true),
            ("removing,h", true),
            ("removed,h,1", true),
            ("BOOT,1", false),
        ] {
            assert_eq!(Status::parse(text).is_dead(), dead, "{text}");
        }
    }
}
