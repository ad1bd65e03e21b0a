//! Passwords: SASL PLAIN, bcrypt, and a queue before the threads that hash.
//!
//! The node has one bounded queue, on the first shard. A helper thread computes a hash with the CPU
//! time that nobody else wants. If that takes over 250 ms (of ten rounds), another one
//! computes it at the shards' cost.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::rc::Rc;
use std::time::Duration;

use bcrypt::{HashParts, Version};
use env::Env;
use env::sync::Semaphore;
use metrics::{Counter, Name, Registry, Unit};
use protocol::{ErrorDetail, ErrorResponse};

use super::Auth;
use crate::answer::invalid;
use crate::shard_context::STATEMENT;

/// Hashes that wait for their turn, at most; beyond, clients are told to come back.
const MAX_WAITING: usize = 64;
/// The same of one address: one that guesses does not shut the others out.
const MAX_WAITING_OF_ADDRESS: usize = 16;
/// Hashes at a time. Each takes a thread for tens of milliseconds.
const AT_A_TIME: u64 = 1;
/// How long a hash of ten rounds, which takes 50 ms, may take with the CPU time that nobody else
/// wants. On a machine that has none to spare it is computed where it takes its part from the
/// shards: nobody is to be locked out by load, nor to cost others their latency by guessing.
const SPARE_PATIENCE: Duration = Duration::from_millis(250);
/// See [`SPARE_PATIENCE`]; it doubles with each round more.
const PATIENT_ROUNDS: u32 = 10;
/// Rounds (their logarithm) above which a hash is not computed: it would take a thread for minutes.
const MAX_ROUNDS: u32 = 16;

/// Who computes hashes for the node.
pub(super) struct Hashing {
    rounds: u32,
    turns: Semaphore,
    waiting: RefCell<BTreeMap<Option<IpAddr>, usize>>,
    computed: Counter,
    refused: Counter,
}

/// A place in the queue, until it is dropped.
struct Place<'a> {
    hashing: &'a Hashing,
    address: Option<IpAddr>,
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let mut waiting = self.hashing.waiting.borrow_mut();
        if let Some(count) = waiting.get_mut(&self.address) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                waiting.remove(&self.address);
            }
        }
    }
}

impl Hashing {
    pub fn new(rounds: u32, registry: &Registry) -> Self {
        let count = |name, help| registry.counter(Name::new("Auth", name), Unit::Count, help);
        Self {
            rounds,
            turns: Semaphore::new(AT_A_TIME),
            waiting: RefCell::default(),
            computed: count("PasswordsHashed", "Password hashes computed."),
            refused: count(
                "PasswordsNotHashed",
                "Password checks rejected because too many waited.",
            ),
        }
    }

    fn queue(&self, address: Option<IpAddr>) -> Result<Place<'_>, ErrorResponse> {
        let mut waiting = self.waiting.borrow_mut();
        let all: usize = waiting.values().sum();
        let own = waiting.entry(address).or_default();
        if all >= MAX_WAITING || *own >= MAX_WAITING_OF_ADDRESS {
            self.refused.inc();
            let message = "Too many passwords are being checked, try again later".to_owned();
            return Err(ErrorResponse { message, detail: ErrorDetail::Overloaded });
        }
        *own += 1;
        Ok(Place { hashing: self, address })
    }

    /// Computes on a helper thread, when it is this one's turn.
    async fn compute<T: Send + 'static>(
        &self,
        env: &Env,
        address: Option<IpAddr>,
        compute: impl FnOnce() -> T + Clone + Send + 'static,
    ) -> Result<T, ErrorResponse> {
        let _place = self.queue(address)?;
        let _turn = self.turns.acquire(1).await;
        self.computed.inc();
        let rounds = self.rounds.min(MAX_ROUNDS).saturating_sub(PATIENT_ROUNDS);
        match env.timeout(SPARE_PATIENCE * (1 << rounds), env.spare(compute.clone())).await {
            Ok(computed) => Ok(computed),
            Err(_) => Ok(env.helper(compute).await),
        }
    }
}

/// Does the password have this hash?
fn verify(password: &str, hash: &Known) -> bool {
    let computed = bcrypt::hash_with_salt(password, hash.rounds, hash.salt);
    let Ok(computed) = computed.map(|parts| parts.format_for_version(Version::TwoA)) else {
        return false;
    };
    let (Some(computed), Some(known)) =
        (computed.as_bytes().get(DIGEST), hash.text.as_bytes().get(DIGEST))
    else {
        return false;
    };
    // as long for one that differs early as for one that differs late
    computed.len() == known.len()
        && computed.iter().zip(known).fold(0, |differing, (a, b)| differing | (a ^ b)) == 0
}

/// Where a hash's text has what depends on the password.
const DIGEST: std::ops::RangeFrom<usize> = 29..;

/// A hash whose form and rounds are such that it can be computed again.
#[derive(Clone, Debug)]
struct Known {
    text: String,
    rounds: u32,
    salt: [u8; 16],
}

impl Known {
    /// Of `$2a$` and its kin (jBCrypt computes `$2a$` alone).
    fn parse(text: &str) -> Option<Self> {
        let parts: HashParts = text.parse().ok()?;
        let rounds = parts.get_cost();
        let is_served = (4..=MAX_ROUNDS).contains(&rounds);
        is_served.then(|| Self { text: text.to_owned(), rounds, salt: parts.get_salt_raw() })
    }

    /// Stands in for the hash of who has none: to be told that takes as long.
    fn nobody(rounds: u32) -> Self {
        Self { text: String::new(), rounds, salt: [0; 16] }
    }
}

/// Is this a hash that HASHED PASSWORD takes?
pub(super) fn is_hash(text: &str) -> bool {
    text.starts_with("$2a$") && Known::parse(text).is_some()
}

fn bad_credentials(message: impl Into<String>) -> ErrorResponse {
    ErrorResponse { message: message.into(), detail: ErrorDetail::BadCredentials }
}

/// User and password of SASL PLAIN: `authzId NUL authnId NUL password`, the first of which does not
/// matter (`PasswordAuthenticator.decodeCredentials`).
fn decode_credentials(token: &[u8]) -> Result<(String, String), ErrorResponse> {
    let mut parts = token.rsplitn(3, |byte| *byte == 0);
    let password = parts.next().filter(|_| token.contains(&0)).unwrap_or_default();
    let user = parts.next().filter(|_| parts.next().is_some_and(|rest| !rest.contains(&0)));
    let nuls = token.iter().filter(|byte| **byte == 0).count();
    if nuls > 2 {
        return Err(bad_credentials(
            "Credential format error: username or password is empty or contains NUL(\\0) character",
        ));
    }
    if password.is_empty() {
        return Err(bad_credentials("Password must not be null"));
    }
    let Some(user) = user.filter(|user| !user.is_empty()) else {
        return Err(bad_credentials("Authentication ID must not be null"));
    };
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Ok((text(user), text(password)))
}

impl Auth {
    /// Judges the token of an AUTH_RESPONSE that came from an address; gives the user's name.
    ///
    /// # Errors
    /// BAD_CREDENTIALS, or OVERLOADED where too many passwords wait to be checked.
    pub async fn log_in(
        self: &Rc<Self>,
        token: &[u8],
        address: IpAddr,
    ) -> Result<Rc<str>, ErrorResponse> {
        let (user, password) = decode_credentials(token)?;
        let hash = self.credentials(&user).await?;
        let known = hash.as_deref().and_then(Known::parse);
        let is_known = known.is_some();
        let rounds = self.hashing.rounds;
        let known = known.unwrap_or_else(|| Known::nobody(rounds));
        let verify = move |first: Rc<Self>| async move {
            let check = move || verify(&password, &known);
            first.hashing.compute(&first.shard.env, Some(address), check).await
        };
        let matches = match self.others.call_async(0, STATEMENT, verify).await {
            Ok(checked) => checked?,
            Err(stopping) => {
                let message = stopping.to_string();
                return Err(ErrorResponse { message, detail: ErrorDetail::ServerError });
            }
        };
        if !(is_known && matches) {
            return Err(bad_credentials(format!(
                "Provided username {user} and/or password are incorrect"
            )));
        }
        let user: Rc<str> = user.into();
        let principal = self.principal(&user).await?;
        match principal.roles.0.first() {
            Some(role) if role.can_login => Ok(user),
            _ => Err(bad_credentials(format!("{user} is not permitted to log in"))),
        }
    }

    /// The hash of a role's password, as remembered or read.
    async fn credentials(self: &Rc<Self>, user: &str) -> Result<Option<Rc<str>>, ErrorResponse> {
        let now = self.shard.env.turn_now();
        if let Some((hash, false)) = self.credentials.get(user, now).served() {
            return Ok(Some(hash));
        }
        let generation = self.credentials.generation();
        let text = "SELECT salted_hash FROM system_auth.roles WHERE role = ?";
        let rows = self.own_cql.run(text, &[user]).await?;
        let hash = rows.first().and_then(|row| row.text(0)).map(Rc::from);
        if let Some(hash) = &hash {
            self.credentials.put(user, Rc::clone(hash), generation, self.shard.env.turn_now());
        }
        Ok(hash)
    }

    /// The hash of a password, in jBCrypt's form.
    pub(super) async fn hash_password(
        self: &Rc<Self>,
        password: &str,
    ) -> Result<String, ErrorResponse> {
        let mut salt = [0; 16];
        self.shard.env.fill_random(&mut salt);
        let (password, rounds) = (password.to_owned(), self.hashing.rounds);
        let compute = move || {
            let parts = bcrypt::hash_with_salt(password, rounds, salt);
            parts.map(|parts| parts.format_for_version(Version::TwoA))
        };
        let hash = move |first: Rc<Self>| async move {
            first.hashing.compute(&first.shard.env, None, compute).await
        };
        let hashed = self.others.call_async(0, STATEMENT, hash).await;
        match hashed.map_err(|stopping| invalid(stopping.to_string()))?? {
            Ok(hash) => Ok(hash),
            Err(error) => Err(invalid(error.to_string())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of the password `cassandra`, as jBCrypt 0.4 wrote it.
    const CASSANDRA: &str = "$2a$10$1fYSgKFrkXNJUVxPyAwVwOVb6tC1YKPDxVIFzYhGFFSqLGMxnbbR2";

    fn decoded(token: &[u8]) -> Result<(String, String), String> {
        decode_credentials(token).map_err(|error| {
            assert_eq!(error.detail, ErrorDetail::BadCredentials);
            error.message
        })
    }

    #[test]
    fn tokens_are_read_as_cassandra_reads_them() {
        let ok = |user: &str, password: &str| Ok((user.to_owned(), password.to_owned()));
        assert_eq!(decoded(b"\0user\0pass"), ok("user", "pass"));
        assert_eq!(decoded(b"other\0user\0pass"), ok("user", "pass"));
        let error = |text: &str| Err(text.to_owned());
        assert_eq!(decoded(b""), error("Password must not be null"));
        assert_eq!(decoded(b"pass"), error("Password must not be null"));
        assert_eq!(decoded(b"\0user\0"), error("Password must not be null"));
        assert_eq!(decoded(b"user\0pass"), error("Authentication ID must not be null"));
        assert_eq!(decoded(b"\0\0pass"), error("Authentication ID must not be null"));
        assert_eq!(
            decoded(b"\0\0user\0pass"),
            error(
                "Credential format error: username or password is empty or contains NUL(\\0) character"
            )
        );
    }

    #[test]
    fn hashes_are_taken_or_refused() {
        let hash = bcrypt::hash_with_salt("pw", 4, [7; 16]).unwrap();
        let hash = hash.format_for_version(Version::TwoA);
        assert!(is_hash(&hash));
        assert!(verify("pw", &Known::parse(&hash).unwrap()));
        assert!(!verify("pW", &Known::parse(&hash).unwrap()));
        assert!(!verify("pw", &Known::nobody(4)));
        assert!(is_hash(CASSANDRA));
        for bad in ["", "x", "$2a$10$", &hash[..59], &hash.replace("$2a$", "$2b$")] {
            assert!(!is_hash(bad), "{bad}");
        }
        // it would take a thread for minutes
        assert!(!is_hash(&CASSANDRA.replace("$10$", "$17$")));
    }

    #[test]
    fn one_address_does_not_fill_the_queue() {
        let hashing = Hashing::new(4, &Registry::new(0));
        let [bad, good] = [1, 2].map(|n| Some(IpAddr::from([10, 0, 0, n])));
        let places: Vec<_> = (0..MAX_WAITING_OF_ADDRESS).map(|_| hashing.queue(bad)).collect();
        assert!(places.iter().all(Result::is_ok));
        assert_eq!(hashing.queue(bad).err().unwrap().detail, ErrorDetail::Overloaded);
        assert!(hashing.queue(good).is_ok());
        drop(places);
        assert!(hashing.waiting.borrow().is_empty());
        let many: Vec<_> = (0..MAX_WAITING)
            .map(|n| hashing.queue(Some(IpAddr::from([10, 0, 1, n as u8]))))
            .collect();
        assert!(many.iter().all(Result::is_ok));
        assert!(hashing.queue(good).is_err());
    }
}
