//! TLS of a program that asks one question, as nodetool does: a session over a blocking stream.

use std::io::{self, Read, Write};
use std::sync::Arc;

use rustls::client::{Resumption, WebPkiServerVerifier};
use rustls::pki_types::ServerName;
use rustls::{
    AlertDescription, CertificateError, ClientConfig, ClientConnection, Error, RootCertStore,
    StreamOwned,
};

use crate::certificates::{
    AnyAddress, Clock, TlsError, all_versions, default_provider, error, own, read,
};

/// Whom to trust, and what to show: contents of files in PEM or PKCS#12.
#[derive(Clone, Default)]
pub struct ClientOptions {
    /// Whom the other side must be certified by.
    pub truststore: Vec<u8>,
    /// Its password; empty: none.
    pub truststore_password: String,
    /// Private key and certificates to show, where the other side asks for them, and the password.
    pub keystore: Option<(Vec<u8>, String)>,
    /// May the certificate of the other side be of another host?
    pub takes_any_host: bool,
}

impl std::fmt::Debug for ClientOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ClientOptions").finish_non_exhaustive()
    }
}

/// A session over a blocking stream.
#[derive(Debug)]
pub struct ClientStream<S: Read + Write>(StreamOwned<ClientConnection, S>);

impl ClientOptions {
    /// Rules for a session whose certificates are to be good at `unix_micros`.
    fn config(&self, unix_micros: i64) -> Result<ClientConfig, TlsError> {
        let store = read("truststore", &self.truststore, &self.truststore_password)?;
        let mut roots = RootCertStore::empty();
        for certificate in store.certificates {
            roots.add(certificate).map_err(|e| error(format!("truststore: {e}")))?;
        }
        let provider = Arc::new(default_provider());
        let verifier =
            WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider));
        let verifier = verifier.build().map_err(|e| error(format!("truststore: {e}")))?;
        let clock = Arc::new(Clock::default());
        clock.set(unix_micros);
        let builder = ClientConfig::builder_with_details(provider, clock)
            .with_protocol_versions(all_versions())
            .map_err(|e| error(e.to_string()))?;
        let builder = match self.takes_any_host {
            false => builder.with_webpki_verifier(verifier),
            true => {
                builder.dangerous().with_custom_certificate_verifier(Arc::new(AnyAddress(verifier)))
            }
        };
        let mut config = match &self.keystore {
            None => builder.with_no_client_auth(),
            Some((bytes, password)) => {
                let (certificates, key) = own("keystore", &read("keystore", bytes, password)?)?;
                let config = builder.with_client_auth_cert(certificates, key);
                config.map_err(|e| error(format!("keystore: {e}")))?
            }
        };
        config.resumption = Resumption::disabled();
        Ok(config)
    }

    /// Begins a session with `host` over a stream that is connected to it.
    ///
    /// # Errors
    /// If the stores make no sense: of kind `InvalidInput`. Else see [`Self::fault`].
    pub fn dial<S: Read + Write>(
        &self,
        host: &str,
        mut stream: S,
        unix_micros: i64,
    ) -> io::Result<ClientStream<S>> {
        let unfit =
            |e: &dyn std::fmt::Display| io::Error::new(io::ErrorKind::InvalidInput, e.to_string());
        let config = self.config(unix_micros).map_err(|e| unfit(&e))?;
        let name = ServerName::try_from(host.to_owned()).map_err(|e| unfit(&e))?;
        let session = ClientConnection::new(Arc::new(config), name);
        let mut session = session.map_err(|e| unfit(&e))?;
        while session.is_handshaking() {
            session.complete_io(&mut stream)?;
        }
        Ok(ClientStream(StreamOwned::new(session, stream)))
    }

    /// What ended a session, by the name of Java's exception and its message.
    pub fn fault(error: &io::Error) -> (&'static str, String) {
        use CertificateError::*;
        let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<Error>());
        match inner {
            None if error.kind() == io::ErrorKind::UnexpectedEof => {
                ("EOFException", "SSL peer shut down incorrectly".to_owned())
            }
            None if error.kind() == io::ErrorKind::ConnectionReset => {
                ("SocketException", "Connection reset".to_owned())
            }
            None => ("SSLException", error.to_string()),
            Some(Error::InvalidCertificate(UnknownIssuer)) => (
                "SunCertPathBuilderException",
                "unable to find valid certification path to requested target".to_owned(),
            ),
            Some(Error::InvalidCertificate(BadSignature)) => (
                "CertPathValidatorException",
                "Path does not chain with any of the trust anchors".to_owned(),
            ),
            Some(Error::InvalidCertificate(Expired | ExpiredContext { .. })) => {
                ("CertificateExpiredException", "the node's certificate has expired".to_owned())
            }
            Some(Error::InvalidCertificate(NotValidForName | NotValidForNameContext { .. })) => {
                let what = "the node's certificate is of another host; use its name with -h, or \
                            --ssl-any-host";
                ("CertificateException", what.to_owned())
            }
            Some(Error::AlertReceived(alert)) => {
                ("SSLHandshakeException", format!("Received fatal alert: {}", alert_name(*alert)))
            }
            Some(Error::InvalidMessage(_)) => {
                ("SSLException", "Unsupported or unrecognized SSL message".to_owned())
            }
            Some(other) => ("SSLHandshakeException", other.to_string()),
        }
    }
}

/// `CertificateRequired` as Java has it: `certificate_required`.
fn alert_name(alert: AlertDescription) -> String {
    let (mut name, mut is_word) = (String::new(), false);
    for letter in format!("{alert:?}").chars() {
        if letter.is_ascii_uppercase() && is_word {
            name.push('_');
        }
        is_word = letter.is_ascii_lowercase();
        name.push(letter.to_ascii_lowercase());
    }
    name
}

impl<S: Read + Write> Read for ClientStream<S> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        self.0.read(out)
    }
}

impl<S: Read + Write> Write for ClientStream<S> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alerts_have_javas_names() {
        assert_eq!(alert_name(AlertDescription::CertificateRequired), "certificate_required");
        assert_eq!(alert_name(AlertDescription::UnknownCA), "unknown_ca");
    }
}
