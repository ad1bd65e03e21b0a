//! TLS of clients and of nodes: the stores that the configuration names, read at the start and
//! whenever they change.
//!
//! A helper thread reads the stores, and every shard gets the certificates.

use std::rc::Rc;
use std::time::Duration;

use config::{InternodeEncryption, ServerTls, Store, TlsStores};
use env::{Class, Env};
use tls::{Certificates, ClientCertificates, Dialing, Tls, TlsOptions};

use crate::error::NodeError;
use crate::node::Node;

/// How often the stores are looked at.
const LOOK: Duration = Duration::from_secs(10);
/// Bytes that a store may have.
const MAX_STORE: u64 = 1 << 20;

/// Whose connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Of {
    Clients,
    Nodes,
}

impl Of {
    /// The options that say how.
    fn section(self) -> &'static str {
        match self {
            Self::Clients => "client_encryption_options",
            Self::Nodes => "server_encryption_options",
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

/// The contents of the stores.
#[derive(Clone, PartialEq, Eq)]
struct Stores {
    keystore: Vec<u8>,
    truststore: Option<Vec<u8>>,
    outbound_keystore: Option<Vec<u8>>,
}

/// What is configured of it.
struct Wanted<'a> {
    stores: &'a TlsStores,
    /// Of nodes: with what they are dialed, its password, and must their certificates be of their
    /// address?
    dialing: Option<(Option<&'a Store>, &'a str, bool)>,
}

async fn read(env: &Env, store: &Store) -> Result<Vec<u8>, String> {
    match store {
        Store::Inline(pem) => Ok(pem.clone().into_bytes()),
        Store::File(path) => {
            let read = env.read_file(path, MAX_STORE).await;
            read.map_err(|error| format!("{}: {error}", path.display()))
        }
    }
}

impl Wanted<'_> {
    async fn read(&self, env: &Env) -> Result<Stores, String> {
        let keystore = read(env, &self.stores.keystore).await?;
        let trusts = self.stores.requires_client_auth || self.dialing.is_some();
        let truststore =
            if trusts { Some(read(env, &self.stores.truststore).await?) } else { None };
        let outbound_keystore = match self.dialing {
            Some((Some(store), ..)) => Some(read(env, store).await?),
            _ => None,
        };
        Ok(Stores { keystore, truststore, outbound_keystore })
    }

    async fn certificates(&self, env: &Env, read: Stores) -> Result<Certificates, String> {
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
}

impl Node {
    /// What is configured, if anything is; and may who connects do without?
    fn wanted_tls(&self, of: Of) -> Option<(Wanted<'_>, bool)> {
        match of {
            Of::Clients => {
                let tls = self.config().client_tls.as_ref()?;
                Some((Wanted { stores: &tls.stores, dialing: None }, tls.is_optional))
            }
            Of::Nodes => {
                let tls = self.config().server_tls.as_ref()?;
                let (store, password) =
                    (tls.outbound_keystore.as_ref(), tls.outbound_keystore_password.as_str());
                let dialing = Some((store, password, tls.verifies_address));
                // what a node may do is known once it has said which one it is
                Some((Wanted { stores: &tls.stores, dialing }, true))
            }
        }
    }

    /// Reads the stores, gives every shard what is in them, and keeps looking; on the first shard,
    /// before any serves.
    pub(crate) async fn start_tls(self: &Rc<Self>, of: Of) -> Result<(), NodeError> {
        let Some((wanted, _)) = self.wanted_tls(of) else { return Ok(()) };
        let failed = |why| NodeError::Tls { section: of.section(), why };
        let stores = wanted.read(self.env()).await.map_err(failed)?;
        let made = wanted.certificates(self.env(), stores.clone()).await.map_err(failed)?;
        self.set_certificates(of, &made).await?;
        let node = Rc::clone(self);
        self.env().spawn(Class::Background, async move { node.keep_tls(of, stores).await });
        Ok(())
    }

    async fn set_certificates(
        self: &Rc<Self>,
        of: Of,
        certificates: &Certificates,
    ) -> Result<(), NodeError> {
        let is_optional = self.wanted_tls(of).is_some_and(|(_, is_optional)| is_optional);
        for shard in 0..self.env().shards() {
            let certificates = certificates.clone();
            let set = move |node: &Rc<Self>| match node.tls(of) {
                Some(tls) => tls.set(&certificates),
                None => node.set_tls(of, Tls::new(&certificates, is_optional)),
            };
            self.on_shard(shard, set).await?;
        }
        Ok(())
    }

    /// Takes the stores anew whenever they change; those that make no sense leave all as it was.
    async fn keep_tls(self: &Rc<Self>, of: Of, mut served: Stores) {
        let mut refused = None;
        loop {
            self.env().sleep(LOOK).await;
            let Some((wanted, _)) = self.wanted_tls(of) else { return };
            let Ok(stores) = wanted.read(self.env()).await else { continue };
            if stores == served || refused.as_ref() == Some(&stores) {
                continue;
            }
            match wanted.certificates(self.env(), stores.clone()).await {
                Ok(made) => {
                    if self.set_certificates(of, &made).await.is_err() {
                        return;
                    }
                    self.count_certificates(true);
                    served = stores;
                }
                Err(_) => {
                    self.count_certificates(false);
                    refused = Some(stores);
                }
            }
        }
    }
}
