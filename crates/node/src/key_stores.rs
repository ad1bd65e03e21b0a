//! The key stores that the configuration names for TLS, and what is in them.

use config::{Config, InternodeEncryption, ServerTls, Store, TlsStores};
use env::Env;
use tls::{Certificates, ClientCertificates, Dialing, TlsOptions};

/// Bytes that a store may have.
const STORE_BYTES_MAX: u64 = 1 << 20;

/// Whose connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Of {
    Clients,
    Nodes,
    /// nodetool's, over the network.
    Operators,
}

impl Of {
    /// The options that say how.
    pub fn section(self) -> &'static str {
        match self {
            Self::Clients => "client_encryption_options",
            Self::Nodes => "server_encryption_options",
            Self::Operators => "admin_encryption_options",
        }
    }
}

/// Is it by their place that connections with nodes are encrypted?
pub(crate) fn encrypts_by_place(tls: &ServerTls) -> bool {
    use InternodeEncryption::*;
    matches!(tls.encrypts, OtherDataCenters | OtherRacks)
}

/// What an operator should know of TLS between nodes as it is configured.
pub(crate) fn tls_notes(tls: &ServerTls) -> Option<String> {
    let is_open = encrypts_by_place(tls) && (!tls.checks_plain_address || tls.is_optional);
    is_open.then(|| {
        "internode_encryption is dc or rack: any host that reaches storage_port and claims to be \
         a node of the same data center or rack needs neither TLS nor a certificate; set \
         internode_encryption to all, or internode_plaintext_checks_address to true and optional \
         to false"
            .to_owned()
    })
}

/// The stores of one section of the configuration.
pub(crate) struct KeyStores<'a> {
    stores: &'a TlsStores,
    /// Of nodes: with what they are dialed, its password, and must their certificates be of their
    /// address?
    dialing: Option<(Option<&'a Store>, &'a str, bool)>,
    is_optional: bool,
}

/// What is in the stores of a section.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Contents {
    keystore: Vec<u8>,
    truststore: Option<Vec<u8>>,
    outbound_keystore: Option<Vec<u8>>,
}

impl<'a> KeyStores<'a> {
    /// What is configured, if anything is.
    pub fn of(config: &'a Config, of: Of) -> Option<Self> {
        match of {
            Of::Clients => {
                let tls = config.client_tls.as_ref()?;
                let (stores, is_optional) = (&tls.stores, tls.is_optional);
                Some(Self { stores, dialing: None, is_optional })
            }
            Of::Operators => {
                let stores = config.admin.as_ref().and(config.admin_tls.as_ref())?;
                Some(Self { stores, dialing: None, is_optional: false })
            }
            Of::Nodes => {
                let tls = config.server_tls.as_ref()?;
                let (store, password) =
                    (tls.outbound_keystore.as_ref(), tls.outbound_keystore_password.as_str());
                let dialing = Some((store, password, tls.verifies_address));
                // what a node may do is known once it has said which one it is
                Some(Self { stores: &tls.stores, dialing, is_optional: true })
            }
        }
    }

    /// May who connects do without TLS?
    pub fn is_optional(&self) -> bool {
        self.is_optional
    }

    /// Reads the stores.
    pub async fn read(&self, env: &Env) -> Result<Contents, String> {
        let keystore = read(env, &self.stores.keystore).await?;
        let truststore = match self.trusts() {
            true => Some(read(env, &self.stores.truststore).await?),
            false => None,
        };
        let outbound_keystore = match self.outbound() {
            Some(store) => Some(read(env, store).await?),
            None => None,
        };
        Ok(Contents { keystore, truststore, outbound_keystore })
    }

    /// What may be served and dialed with such contents.
    pub async fn certificates(&self, env: &Env, read: Contents) -> Result<Certificates, String> {
        let dialing = self.dialing.map(|(_, password, verifies_address)| Dialing {
            keystore: read.outbound_keystore.map(|bytes| (bytes, password.to_owned())),
            verifies_address,
        });
        let options = TlsOptions {
            keystore: read.keystore,
            keystore_password: self.stores.keystore_password.clone(),
            truststore: read.truststore,
            truststore_password: self.stores.truststore_password.clone(),
            clients: match self.stores.requires_client_auth {
                true if self.stores.takes_expired => ClientCertificates::RequiredOrTrustedAsItIs,
                true => ClientCertificates::Required,
                false => ClientCertificates::None,
            },
            dialing,
            protocols: self.stores.protocols.clone(),
            cipher_suites: self.stores.cipher_suites.clone(),
        };
        let made = env.helper(move || Certificates::new(&options)).await;
        made.map_err(|error| error.to_string())
    }

    /// The files in which `new` differs from `old`.
    pub fn changed_files(&self, old: &Contents, new: &Contents) -> String {
        let stores = [
            (old.keystore != new.keystore).then_some(&self.stores.keystore),
            (old.truststore != new.truststore).then_some(&self.stores.truststore),
            self.outbound().filter(|_| old.outbound_keystore != new.outbound_keystore),
        ];
        let path = |store: &Store| match store {
            Store::File(path) => Some(path.display().to_string()),
            Store::Inline(_) => None,
        };
        stores.into_iter().flatten().filter_map(path).collect::<Vec<_>>().join(", ")
    }

    fn trusts(&self) -> bool {
        self.stores.requires_client_auth || self.dialing.is_some()
    }

    fn outbound(&self) -> Option<&'a Store> {
        self.dialing.and_then(|(store, ..)| store)
    }
}

async fn read(env: &Env, store: &Store) -> Result<Vec<u8>, String> {
    match store {
        Store::Inline(pem) => Ok(pem.clone().into_bytes()),
        Store::File(path) => {
            let read = env.read_file(path, STORE_BYTES_MAX).await;
            read.map_err(|error| format!("{}: {error}", path.display()))
        }
    }
}
