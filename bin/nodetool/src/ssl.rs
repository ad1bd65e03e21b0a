//! TLS of nodetool: `--ssl` and the stores that go with it.
//!
//! Without `--truststore`, `--ssl` reads `~/.cassandra/nodetool-ssl.properties`, as Cassandra's
//! nodetool does: `-Djavax.net.ssl.trustStore=FILE` and the like. Stores are PEM or PKCS#12.

use std::io::{self, Read};
use std::path::{Path, PathBuf};

use tls::ClientOptions;

use crate::password::words_of;

/// Bytes of a store that are worth reading.
const STORE_BYTES_MAX: u64 = 1 << 20;
/// Where Cassandra's nodetool finds its stores, under the home directory.
const PROPERTIES: &str = ".cassandra/nodetool-ssl.properties";
/// How the properties begin that name stores.
const PREFIX: &str = "-Djavax.net.ssl.";

/// The files that a command line or the properties name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stores {
    /// `--truststore`.
    pub truststore: Option<PathBuf>,
    /// `--truststore-password`.
    pub truststore_password: Option<String>,
    /// `--keystore`.
    pub keystore: Option<PathBuf>,
    /// `--keystore-password`.
    pub keystore_password: Option<String>,
}

impl Stores {
    /// What the files hold.
    pub fn read(self, takes_any_host: bool) -> io::Result<ClientOptions> {
        let stores = match (&self.truststore, home()) {
            (None, Some(home)) => match read(&home.join(PROPERTIES)) {
                Ok(text) => self.or(&Self::of_properties(&String::from_utf8_lossy(&text))),
                Err(error) if error.kind() == io::ErrorKind::NotFound => self,
                Err(error) => return Err(named(&home.join(PROPERTIES), &error)),
            },
            _ => self,
        };
        let Some(truststore) = &stores.truststore else {
            let what = "--ssl needs --truststore FILE: PEM or PKCS#12, with the certificate of the \
                        authority that signed the node's";
            return Err(io::Error::other(what));
        };
        let store = |path: &Path| read(path).map_err(|error| named(path, &error));
        let keystore = match &stores.keystore {
            Some(path) => Some((store(path)?, stores.keystore_password.unwrap_or_default())),
            None => None,
        };
        Ok(ClientOptions {
            truststore: store(truststore)?,
            truststore_password: stores.truststore_password.unwrap_or_default(),
            keystore,
            takes_any_host,
        })
    }

    /// These, or else those.
    fn or(self, those: &Self) -> Self {
        Self {
            truststore: self.truststore.or_else(|| those.truststore.clone()),
            truststore_password: self
                .truststore_password
                .or_else(|| those.truststore_password.clone()),
            keystore: self.keystore.or_else(|| those.keystore.clone()),
            keystore_password: self.keystore_password.or_else(|| those.keystore_password.clone()),
        }
    }

    fn of_properties(text: &str) -> Self {
        let lines = text.lines().filter(|line| !line.trim_start().starts_with('#'));
        let words: Vec<&str> = lines.flat_map(str::split_whitespace).collect();
        let of = |name: &str| {
            let mut values = words.iter().filter_map(|word| {
                word.strip_prefix(PREFIX)?.strip_prefix(name)?.strip_prefix('=')
            });
            values.next_back().map(str::to_owned)
        };
        Self {
            truststore: of("trustStore").map(PathBuf::from),
            truststore_password: of("trustStorePassword"),
            keystore: of("keyStore").map(PathBuf::from),
            keystore_password: of("keyStorePassword"),
        }
    }
}

fn home() -> Option<PathBuf> {
    std::env::var_os("HOME").map(PathBuf::from)
}

fn named(path: &Path, error: &io::Error) -> io::Error {
    io::Error::other(format!("{} ({})", path.display(), words_of(error)))
}

fn read(path: &Path) -> io::Result<Vec<u8>> {
    #[expect(clippy::disallowed_types, reason = "a program of its own, without crate env")]
    let file = std::fs::File::open(path)?;
    let mut bytes = Vec::new();
    file.take(STORE_BYTES_MAX).read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_properties_of_cassandras_nodetool() {
        let text = "# of the cluster\n-Djavax.net.ssl.trustStore=/t.p12\n\
                    -Djavax.net.ssl.trustStorePassword=x -Djavax.net.ssl.keyStore=/k.pem\n\
                    -Dcom.sun.management.jmxremote.ssl=true\n";
        let stores = Stores::of_properties(text);
        let expected = Stores {
            truststore: Some("/t.p12".into()),
            truststore_password: Some("x".into()),
            keystore: Some("/k.pem".into()),
            keystore_password: None,
        };
        assert_eq!(stores, expected);
        let own = Stores { truststore: Some("/own".into()), ..Stores::default() };
        let both = own.or(&expected);
        assert_eq!(both.truststore, Some("/own".into()));
        assert_eq!(both.keystore, Some("/k.pem".into()));
    }
}
