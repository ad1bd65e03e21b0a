//! Ballots: time-UUIDs, later ones beat earlier ones (`service.paxos.Ballot`).
//!
//! Ballots are unique timestamps, so they never step back.

use types::Uuid;

/// Whose promises a ballot asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Those of the replicas of one data center (`LOCAL_SERIAL`).
    Local,
    /// Those of all (`SERIAL`).
    Global,
}

/// A ballot. Its ticks beyond whole microseconds say its [`Scope`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ballot(Uuid);

impl Ballot {
    /// Before all others.
    pub fn none() -> Self {
        Self(Uuid::from_unix_micros(0, 0))
    }

    /// Of a time, with a half that tells it from those of other nodes.
    pub fn new(unix_micros: i64, scope: Scope, unique: u64) -> Self {
        let flag = match scope {
            Scope::Local => 1,
            Scope::Global => 2,
        };
        let ticks = Uuid::from_unix_micros(unix_micros, unique).ticks();
        let ticks = ticks.expect("a UUID that is made of a time has one");
        Self(Uuid::from_ticks(ticks.saturating_add(flag), unique))
    }

    /// As it is stored or sent; `None` unless it is a time-UUID: another one would pass for the
    /// earliest of all.
    pub fn from_value(value: &[u8]) -> Option<Self> {
        Uuid::from_value(value).filter(|uuid| uuid.ticks().is_some()).map(Self)
    }

    /// The time-UUID that it is.
    pub fn uuid(self) -> Uuid {
        self.0
    }

    /// Its bytes.
    pub fn to_bytes(self) -> [u8; 16] {
        self.0.to_bytes()
    }

    /// Ticks of 100 ns since 1582.
    pub fn ticks(self) -> i64 {
        self.0.ticks().expect("a ballot is a time-UUID")
    }

    /// Its time: that of what is written under it.
    pub fn unix_micros(self) -> i64 {
        self.0.unix_micros().expect("a ballot is a time-UUID")
    }

    /// Its time in seconds, by which state of the past expires.
    pub fn seconds(self) -> i64 {
        self.unix_micros() / 1_000_000
    }

    /// Is it later?
    pub fn is_after(self, other: Self) -> bool {
        self.ticks() > other.ticks()
    }

    /// The path of the `n`th cell of a list that is written under it.
    pub fn list_path(self, n: u64) -> [u8; 16] {
        Uuid::from_ticks(self.ticks(), n ^ types::uuid::MIN_CLOCK_SEQ_AND_NODE).to_bytes()
    }
}

#[cfg(test)]
mod tests {
    use types::CqlType;

    use super::*;

    #[test]
    fn later_ones_beat_earlier_ones_and_keep_their_time() {
        let at = |micros, scope| Ballot::new(micros, scope, u64::MAX);
        let (a, b) =
            (at(1_700_000_000_000_001, Scope::Local), at(1_700_000_000_000_001, Scope::Global));
        assert!(b.is_after(a) && !a.is_after(b) && !a.is_after(a));
        assert_eq!(b.unix_micros(), 1_700_000_000_000_001);
        assert_eq!(b.seconds(), 1_700_000_000);
        assert!(a.is_after(Ballot::none()));
        assert_eq!(Ballot::from_value(&b.to_bytes()), Some(b));
        assert_eq!(Ballot::none().to_bytes()[..8], [0x13, 0x81, 0x40, 0, 0x1d, 0xd2, 0x11, 0xb2]);
    }

    #[test]
    fn cells_of_lists_come_in_order() {
        let ballot = Ballot::new(1_700_000_000_000_001, Scope::Global, 7);
        let paths: Vec<_> = [0, 1, 127, 128, 255, 256].map(|n| ballot.list_path(n)).into();
        assert!(paths.is_sorted_by(|a, b| CqlType::TimeUuid.compare(a, b).is_lt()));
    }
}
