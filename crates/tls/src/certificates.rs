//! From key stores to what rustls serves and dials with.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use p12_keystore::{KeyStore, KeyStoreEntry, Pkcs12ImportPolicy};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{Resumption, WebPkiServerVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::pki_types::{ServerName, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use rustls::time_provider::TimeProvider;
use rustls::{
    CertificateError, ClientConfig, ConfigBuilder, DigitallySignedStruct, DistinguishedName, Error,
    RootCertStore, ServerConfig, SignatureScheme, SupportedProtocolVersion, WantsVerifier, version,
};

/// What the configuration says of TLS, with the contents of the files that it names.
#[derive(Clone, Default)]
pub struct TlsOptions {
    /// Private key and certificates: PKCS#12 or PEM.
    pub keystore: Vec<u8>,
    /// Its password; empty: none.
    pub keystore_password: String,
    /// Whom others must be certified by; none, where nobody is.
    pub truststore: Option<Vec<u8>>,
    /// Must who connects show a certificate?
    pub clients: ClientCertificates,
    /// How to connect to others, if that is wanted.
    pub dialing: Option<Dialing>,
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

/// What who connects has to show.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ClientCertificates {
    /// No certificate.
    #[default]
    None,
    /// One of the truststore.
    Required,
    /// The same, or one that is in the truststore itself and has expired.
    RequiredOrTrustedAsItIs,
}

/// How this side connects to others, which must be certified by the truststore.
#[derive(Clone, Default)]
pub struct Dialing {
    /// Private key and certificates where they are not those that it serves with, and their
    /// password.
    pub keystore: Option<(Vec<u8>, String)>,
    /// Must their certificate be of the address that is connected to?
    pub verifies_address: bool,
}

/// Certificates, key and rules, ready to serve and to dial with.
#[derive(Clone, Debug)]
pub struct Certificates {
    pub(super) server: Arc<ServerConfig>,
    pub(super) client: Option<Arc<ClientConfig>>,
    pub(super) clock: Arc<Clock>,
}

/// Seconds since 1970, as whoever began a connection last said: rustls is to ask no clock of its
/// own.
#[derive(Debug, Default)]
pub(super) struct Clock(AtomicU64);

impl Clock {
    pub fn set(&self, unix_micros: i64) {
        let seconds = u64::try_from(unix_micros / 1_000_000).unwrap_or_default();
        self.0.store(seconds, Ordering::Relaxed);
    }
}

impl TimeProvider for Clock {
    fn current_time(&self) -> Option<UnixTime> {
        Some(UnixTime::since_unix_epoch(Duration::from_secs(self.0.load(Ordering::Relaxed))))
    }
}

/// Takes a certificate that has expired if it is itself among the trusted ones, as Java does.
#[derive(Debug)]
struct TrustedAsTheyAre {
    verifier: Arc<dyn ClientCertVerifier>,
    trusted: Vec<CertificateDer<'static>>,
}

impl ClientCertVerifier for TrustedAsTheyAre {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.verifier.root_hint_subjects()
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        match self.verifier.verify_client_cert(end_entity, intermediates, now) {
            Err(Error::InvalidCertificate(
                CertificateError::Expired | CertificateError::ExpiredContext { .. },
            )) if self.trusted.iter().any(|trusted| trusted == end_entity) => {
                Ok(ClientCertVerified::assertion())
            }
            verified => verified,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.verifier.verify_tls12_signature(message, certificate, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.verifier.verify_tls13_signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.verifier.supported_verify_schemes()
    }
}

/// Takes any address that a good certificate is of.
#[derive(Debug)]
pub(super) struct AnyAddress(pub Arc<WebPkiServerVerifier>);

impl ServerCertVerifier for AnyAddress {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let verified =
            self.0.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now);
        match verified {
            // looked at last, when all else is known to be good
            Err(Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) => Ok(ServerCertVerified::assertion()),
            verified => verified,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.0.verify_tls12_signature(message, certificate, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.0.verify_tls13_signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_verify_schemes()
    }
}

/// Why there is no TLS. Neither passwords nor keys are in its text.
#[derive(Debug, PartialEq, Eq)]
pub struct TlsError(String);

impl std::fmt::Display for TlsError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for TlsError {}

pub(super) fn error(text: impl Into<String>) -> TlsError {
    TlsError(text.into())
}

/// The first bytes of Java's own key stores, and of a JCEKS.
const JKS: [[u8; 4]; 2] = [[0xFE, 0xED, 0xFE, 0xED], [0xCE, 0xCE, 0xCE, 0xCE]];
/// The first byte of a PKCS#12 file.
const DER_SEQUENCE: u8 = 0x30;

/// What a store holds.
#[derive(Default)]
pub(super) struct Store {
    key: Option<PrivateKeyDer<'static>>,
    pub certificates: Vec<CertificateDer<'static>>,
}

impl Certificates {
    /// Reads the stores. May take milliseconds: for a helper thread.
    ///
    /// # Errors
    /// If a store cannot be read, or what it holds does not fit together.
    pub fn new(options: &TlsOptions) -> Result<Self, TlsError> {
        let store = read("keystore", &options.keystore, &options.keystore_password)?;
        let provider = Arc::new(provider(&options.cipher_suites)?);
        let versions = versions(&options.protocols)?;
        let mut trusted = Vec::new();
        let roots = match &options.truststore {
            None => None,
            Some(bytes) => {
                let store = read("truststore", bytes, &options.truststore_password)?;
                let mut roots = RootCertStore::empty();
                trusted.clone_from(&store.certificates);
                for certificate in store.certificates {
                    roots.add(certificate).map_err(|e| error(format!("truststore: {e}")))?;
                }
                Some(Arc::new(roots))
            }
        };
        let missing = || {
            error(
                "no truststore is set, and certificates of the other side cannot be verified \
                 without one; set truststore",
            )
        };
        let unfit = |e| error(format!("cannot use cipher_suites with accepted_protocols: {e}"));
        let clock = Arc::new(Clock::default());
        let builder =
            ServerConfig::builder_with_details(Arc::clone(&provider), Arc::<Clock>::clone(&clock))
                .with_protocol_versions(&versions)
                .map_err(unfit)?;
        let builder = match options.clients {
            ClientCertificates::None => builder.with_no_client_auth(),
            ClientCertificates::Required | ClientCertificates::RequiredOrTrustedAsItIs => {
                let (roots, provider) = (roots.clone().ok_or_else(missing)?, Arc::clone(&provider));
                let verifier = WebPkiClientVerifier::builder_with_provider(roots, provider).build();
                let verifier = verifier.map_err(|e| error(format!("truststore: {e}")))?;
                builder.with_client_cert_verifier(match options.clients {
                    ClientCertificates::RequiredOrTrustedAsItIs => {
                        Arc::new(TrustedAsTheyAre { verifier, trusted })
                    }
                    _ => verifier,
                })
            }
        };
        let (certificates, key) = own("keystore", &store)?;
        let server = builder.with_single_cert(certificates, key);
        let mut server = server.map_err(|e| error(format!("keystore: {e}")))?;
        let client = match &options.dialing {
            None => None,
            Some(dialing) => {
                // a session that is resumed would be asked for no certificate
                server.session_storage = Arc::new(NoServerSessionStorage {});
                server.send_tls13_tickets = 0;
                let roots = roots.ok_or_else(missing)?;
                let clock = Arc::<Clock>::clone(&clock);
                let builder = ClientConfig::builder_with_details(Arc::clone(&provider), clock)
                    .with_protocol_versions(&versions)
                    .map_err(unfit)?;
                Some(Arc::new(dialing.config(builder, roots, provider, &store)?))
            }
        };
        Ok(Self { server: Arc::new(server), client, clock })
    }
}

impl Dialing {
    fn config(
        &self,
        builder: ConfigBuilder<ClientConfig, WantsVerifier>,
        roots: Arc<RootCertStore>,
        provider: Arc<CryptoProvider>,
        served: &Store,
    ) -> Result<ClientConfig, TlsError> {
        let verifier = WebPkiServerVerifier::builder_with_provider(roots, provider).build();
        let verifier = verifier.map_err(|e| error(format!("truststore: {e}")))?;
        let builder = match self.verifies_address {
            true => builder.with_webpki_verifier(verifier),
            false => {
                builder.dangerous().with_custom_certificate_verifier(Arc::new(AnyAddress(verifier)))
            }
        };
        let (certificates, key) = match &self.keystore {
            None => own("keystore", served)?,
            Some((bytes, password)) => {
                let name = "outbound_keystore";
                own(name, &read(name, bytes, password)?)?
            }
        };
        let config = builder.with_client_auth_cert(certificates, key);
        let mut config = config
            .map_err(|e| error(format!("cannot use the key for outbound connections: {e}")))?;
        config.resumption = Resumption::disabled();
        Ok(config)
    }
}

type Own = (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>);

/// A store's own key and its certificates.
pub(super) fn own(what: &str, store: &Store) -> Result<Own, TlsError> {
    let key = store.key.as_ref();
    let key = key.ok_or_else(|| error(format!("the {what} holds no private key")))?;
    if store.certificates.is_empty() {
        return Err(error(format!("the {what} holds no certificate for its key")));
    }
    Ok((store.certificates.clone(), key.clone_key()))
}

/// All suites that are safe.
pub(super) fn default_provider() -> CryptoProvider {
    rustls::crypto::ring::default_provider()
}

/// All protocols that are safe.
pub(super) fn all_versions() -> &'static [&'static SupportedProtocolVersion] {
    rustls::DEFAULT_VERSIONS
}

/// The suites that are served under Java's names; TLS 1.3's are called otherwise.
fn provider(wanted: &[String]) -> Result<CryptoProvider, TlsError> {
    let mut provider = default_provider();
    if wanted.is_empty() {
        return Ok(provider);
    }
    provider.cipher_suites.retain(|suite| {
        let ours = format!("{:?}", suite.suite()).replace("TLS13_", "TLS_");
        wanted.contains(&ours)
    });
    match provider.cipher_suites.is_empty() {
        true => Err(error("none of cipher_suites is supported; use suites of AES-GCM or ChaCha20")),
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
            other => return Err(error(format!("accepted_protocols: unknown protocol {other}"))),
        }
    }
    match (wanted.is_empty(), versions.is_empty()) {
        (true, _) => Ok(all_versions().to_vec()),
        (false, true) => {
            Err(error("none of accepted_protocols is supported; use TLSv1.2 or TLSv1.3"))
        }
        (false, false) => Ok(versions),
    }
}

/// A store in whichever form its bytes are.
pub(super) fn read(what: &str, bytes: &[u8], password: &str) -> Result<Store, TlsError> {
    if JKS.iter().any(|magic| bytes.starts_with(magic)) {
        return Err(error(format!(
            "the {what} is a JKS, which is not supported; convert it: keytool -importkeystore \
             -srckeystore FILE -destkeystore FILE.p12 -deststoretype PKCS12"
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
        .map_err(|e| error(format!("cannot read the {what}, or its password is wrong: {e}")))?;
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
    let bad = |e: &dyn std::fmt::Display| error(format!("the {what} is not valid PEM: {e}"));
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
    let bad = || error(format!("cannot decrypt the key of the {what} with its password"));
    let pem = format!("{BEGIN}\n{}\n{END}\n", body.trim());
    let (_, document) = pkcs8::Document::from_pem(&pem).map_err(|_| bad())?;
    let encrypted =
        pkcs8::EncryptedPrivateKeyInfoRef::try_from(document.as_bytes()).map_err(|_| bad())?;
    let key = encrypted.decrypt(password).map_err(|_| bad())?;
    Ok(Some(PrivatePkcs8KeyDer::from(key.as_bytes().to_vec()).into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Says the same of every certificate.
    #[derive(Debug)]
    struct Says(CertificateError);

    impl ClientCertVerifier for Says {
        fn root_hint_subjects(&self) -> &[DistinguishedName] {
            &[]
        }

        fn verify_client_cert(
            &self,
            _: &CertificateDer<'_>,
            _: &[CertificateDer<'_>],
            _: UnixTime,
        ) -> Result<ClientCertVerified, Error> {
            Err(Error::InvalidCertificate(self.0.clone()))
        }

        fn verify_tls12_signature(
            &self,
            _: &[u8],
            _: &CertificateDer<'_>,
            _: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, Error> {
            Err(Error::DecryptError)
        }

        fn verify_tls13_signature(
            &self,
            _: &[u8],
            _: &CertificateDer<'_>,
            _: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, Error> {
            Err(Error::DecryptError)
        }

        fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
            Vec::new()
        }
    }

    #[test]
    fn what_has_expired_is_taken_only_if_it_is_trusted_itself() {
        let certificate = |bytes: &[u8]| CertificateDer::from(bytes.to_vec());
        let takes = |says: CertificateError, shown: &[u8]| {
            let trusted = vec![certificate(b"ca"), certificate(b"client")];
            let verifier = TrustedAsTheyAre { verifier: Arc::new(Says(says)), trusted };
            let now = UnixTime::since_unix_epoch(Duration::ZERO);
            verifier.verify_client_cert(&certificate(shown), &[], now).is_ok()
        };
        assert!(takes(CertificateError::Expired, b"client"));
        assert!(!takes(CertificateError::Expired, b"other"));
        assert!(!takes(CertificateError::UnknownIssuer, b"client"));
        assert!(!takes(CertificateError::NotValidYet, b"client"));
    }
}
