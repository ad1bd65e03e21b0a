//! What kinds of requests a measurement makes, and how many of each.

use rand::Rng as _;
use rand::rngs::StdRng;

use crate::Outcome;
use crate::options::Options;
use crate::table::Kind;

/// Shares of all requests; those that are none of these are updates.
#[derive(Clone, Copy)]
pub struct Mix {
    reads: f64,
    inserts: f64,
    scans: f64,
}

impl Mix {
    pub const OPTIONS: [&str; 3] = ["reads", "inserts", "scans"];

    /// As options say; else reads and updates in halves.
    pub fn parse(options: &Options) -> Outcome<Self> {
        let mix = Self {
            reads: options.one("reads", 0.5)?,
            inserts: options.one("inserts", 0.0)?,
            scans: options.one("scans", 0.0)?,
        };
        let shares = [mix.reads, mix.inserts, mix.scans];
        let is_share = |share: f64| (0.0..=1.0).contains(&share);
        if shares.into_iter().all(is_share) && is_share(shares.iter().sum()) {
            return Ok(mix);
        }
        Err("--reads, --inserts and --scans are shares of all requests: from 0 to 1, together too"
            .into())
    }

    /// The kind of a request.
    pub fn any(&self, rng: &mut StdRng) -> Kind {
        self.kind(rng.random())
    }

    /// The kind that stands at that place when all requests are laid from 0 to 1.
    fn kind(&self, place: f64) -> Kind {
        match place {
            place if place < self.reads => Kind::Read,
            place if place < self.reads + self.inserts => Kind::Insert,
            place if place < self.reads + self.inserts + self.scans => Kind::Scan,
            _ => Kind::Update,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Mix;
    use crate::Outcome;
    use crate::options::Options;
    use crate::table::Kind;

    fn parse(text: &str) -> Outcome<Mix> {
        let words: Vec<String> = text.split(' ').map(str::to_owned).collect();
        Mix::parse(&Options::parse(&words, &Mix::OPTIONS)?)
    }

    #[test]
    fn each_kind_has_its_share() {
        let mix = parse("a --reads 0.6 --inserts 0.1 --scans 0.1").expect("shares");
        assert!(matches!(mix.kind(0.0), Kind::Read));
        assert!(matches!(mix.kind(0.65), Kind::Insert));
        assert!(matches!(mix.kind(0.75), Kind::Scan));
        assert!(matches!(mix.kind(0.85), Kind::Update));
        let all = parse("a --reads 1").expect("a share");
        assert!(matches!(all.kind(0.999), Kind::Read));
        let none = parse("a --reads 0").expect("a share");
        assert!(matches!(none.kind(0.0), Kind::Update));
    }

    #[test]
    fn shares_of_more_than_all_are_refused() {
        for text in
            ["a --reads 1.1", "a --reads -1", "a --reads 0.6 --inserts 0.6", "a --reads NaN"]
        {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
