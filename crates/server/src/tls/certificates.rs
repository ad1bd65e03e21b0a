//! From key stores to what rustls serves with.

use std::sync::Arc;

use p12_keystore::{KeyStore, KeyStoreEntry, Pkcs12ImportPolicy};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig, SupportedProtocolVersion, version};

/// What the configuration says of TLS, with the contents of the files that it names.
#[derive(Clone, Default)]
pub struct TlsOptions {
    /// Private key and certificates: PKCS#12 or PEM.
    pub keystore: Vec<u8>,
    /// Its password; empty: none.
    pub keystore_password: String,
    /// Whom clients must be certified by; none: clients show no certificate.
    pub truststore: Option<Vec<u8>>,
    /// Its password; empty: none.
    pub truststore_password: String,
    /// `TLS`, `TLSv1.2`, `TLSv1.3`; none: both.
    pub protocols: Vec<String>,
    /// In Java's names; none: all that are safe.
    pub cipher_suites: Vec<String>,
}

impl std::fmt::Debug for TlsOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TlsOptions").finish_non_exhaustive()
    }
}

/// Certificates, key and rules, ready to serve with.
#[derive(Clone, Debug)]
pub struct Certificates(pub(super) Arc<ServerConfig>);

/// Why there is no TLS. Neither passwords nor keys are in its text.
#[derive(Debug, PartialEq, Eq)]
pub struct TlsError(String);

impl std::fmt::Display for TlsError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for TlsError {}

fn error(text: impl Into<String>) -> TlsError {
    TlsError(text.into())
}

/// The first bytes of Java's own key stores, and of a JCEKS.
const JKS: [[u8; 4]; 2] = [[0xFE, 0xED, 0xFE, 0xED], [0xCE, 0xCE, 0xCE, 0xCE]];
/// The first byte of a PKCS#12 file.
const DER_SEQUENCE: u8 = 0x30;

/// What a store holds.
#[derive(Default)]
struct Store {
    key: Option<PrivateKeyDer<'static>>,
    certificates: Vec<CertificateDer<'static>>,
}

impl Certificates {
    /// Reads the stores. May take milliseconds: for a helper thread.
    ///
    /// # Errors
    /// If a store cannot be read, or what it holds does not fit together.
    pub fn new(options: &TlsOptions) -> Result<Self, TlsError> {
        let store = read("keystore", &options.keystore, &options.keystore_password)?;
        let key = store.key.ok_or_else(|| error("the keystore holds no private key"))?;
        if store.certificates.is_empty() {
            return Err(error("the keystore holds no certificate of its key"));
        }
        let provider = Arc::new(provider(&options.cipher_suites)?);
        let versions = versions(&options.protocols)?;
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_protocol_versions(&versions)
            .map_err(|e| error(format!("protocols and cipher suites do not fit: {e}")))?;
        let builder = match &options.truststore {
            None => builder.with_no_client_auth(),
            Some(bytes) => {
                let store = read("truststore", bytes, &options.truststore_password)?;
                let mut roots = RootCertStore::empty();
                for certificate in store.certificates {
                    roots.add(certificate).map_err(|e| error(format!("truststore: {e}")))?;
                }
                let verifier =
                    WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build();
                builder.with_client_cert_verifier(
                    verifier.map_err(|e| error(format!("truststore: {e}")))?,
                )
            }
        };
        let config = builder.with_single_cert(store.certificates, key);
        Ok(Self(Arc::new(config.map_err(|e| error(format!("keystore: {e}")))?)))
    }
}

/// The suites that are served under Java's names; TLS 1.3's are called otherwise.
fn provider(wanted: &[String]) -> Result<CryptoProvider, TlsError> {
    let mut provider = rustls::crypto::ring::default_provider();
    if wanted.is_empty() {
        return Ok(provider);
    }
    provider.cipher_suites.retain(|suite| {
        let ours = format!("{:?}", suite.suite()).replace("TLS13_", "TLS_");
        wanted.contains(&ours)
    });
    match provider.cipher_suites.is_empty() {
        true => {
            Err(error("none of cipher_suites is served: there are those of AES-GCM and ChaCha20"))
        }
        false => Ok(provider),
    }
}

fn versions(wanted: &[String]) -> Result<Vec<&'static SupportedProtocolVersion>, TlsError> {
    let mut versions = Vec::new();
    for name in wanted {
        match name.as_str() {
            "TLS" => versions.extend([&version::TLS12, &version::TLS13]),
            "TLSv1.2" => versions.push(&version::TLS12),
            "TLSv1.3" => versions.push(&version::TLS13),
            // broken, and so not served; others may be
            "SSLv2Hello" | "SSLv3" | "TLSv1" | "TLSv1.1" => {}
            other => return Err(error(format!("protocol {other} is unknown"))),
        }
    }
    match (wanted.is_empty(), versions.is_empty()) {
        (true, _) => Ok(vec![&version::TLS12, &version::TLS13]),
        (false, true) => Err(error("none of the protocols is safe: there are TLSv1.2 and TLSv1.3")),
        (false, false) => Ok(versions),
    }
}

/// A store in whichever form its bytes are.
fn read(what: &str, bytes: &[u8], password: &str) -> Result<Store, TlsError> {
    if JKS.iter().any(|magic| bytes.starts_with(magic)) {
        return Err(error(format!(
            "the {what} is a JKS, which is not read: keytool -importkeystore -srckeystore FILE -destkeystore FILE.p12 -deststoretype PKCS12 makes a PKCS#12 of it"
        )));
    }
    match bytes.first() {
        Some(&DER_SEQUENCE) => read_pkcs12(what, bytes, password),
        Some(_) => read_pem(what, bytes, password),
        None => Err(error(format!("the {what} is empty"))),
    }
}

fn read_pkcs12(what: &str, bytes: &[u8], password: &str) -> Result<Store, TlsError> {
    let store = KeyStore::from_pkcs12(bytes, password, Pkcs12ImportPolicy::Relaxed)
        .map_err(|e| error(format!("the {what} cannot be read, or not with its password: {e}")))?;
    let mut found = Store::default();
    let der = |certificate: &p12_keystore::Certificate| {
        CertificateDer::from(certificate.as_der().to_vec())
    };
    if let Some((_, chain)) = store.private_key_chain() {
        found.key = Some(PrivatePkcs8KeyDer::from(chain.key().as_der().to_vec()).into());
        found.certificates.extend(chain.certs().iter().map(der));
    }
    for (_, entry) in store.entries() {
        if let KeyStoreEntry::Certificate(certificate) = entry
            && found.key.is_none()
        {
            found.certificates.push(der(certificate));
        }
    }
    Ok(found)
}

fn read_pem(what: &str, bytes: &[u8], password: &str) -> Result<Store, TlsError> {
    let bad = |e: &dyn std::fmt::Display| error(format!("the {what} is no PEM: {e}"));
    let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(bytes).collect();
    let certificates = certificates.map_err(|e| bad(&e))?;
    let key = match PrivateKeyDer::from_pem_slice(bytes) {
        Ok(key) => Some(key),
        Err(rustls::pki_types::pem::Error::NoItemsFound) => encrypted_key(what, bytes, password)?,
        Err(e) => return Err(bad(&e)),
    };
    if certificates.is_empty() && key.is_none() {
        return Err(error(format!("the {what} holds neither certificates nor a key in PEM")));
    }
    Ok(Store { key, certificates })
}

/// The key of a PEM in which it is encrypted.
fn encrypted_key(
    what: &str,
    bytes: &[u8],
    password: &str,
) -> Result<Option<PrivateKeyDer<'static>>, TlsError> {
    const BEGIN: &str = "-----BEGIN ENCRYPTED PRIVATE KEY-----";
    const END: &str = "-----END ENCRYPTED PRIVATE KEY-----";
    let text = std::str::from_utf8(bytes).unwrap_or_default();
    let Some((_, rest)) = text.split_once(BEGIN) else { return Ok(None) };
    let Some((body, _)) = rest.split_once(END) else { return Ok(None) };
    let bad = || error(format!("the key of the {what} cannot be decrypted with its password"));
    let pem = format!("{BEGIN}\n{}\n{END}\n", body.trim());
    let (_, document) = pkcs8::Document::from_pem(&pem).map_err(|_| bad())?;
    let encrypted =
        pkcs8::EncryptedPrivateKeyInfoRef::try_from(document.as_bytes()).map_err(|_| bad())?;
    let key = encrypted.decrypt(password).map_err(|_| bad())?;
    Ok(Some(PrivatePkcs8KeyDer::from(key.as_bytes().to_vec()).into()))
}
