package Tea::Pot;
use strict;
use Scalar::Util qw(blessed);

# A pot holds six cups.
sub new { return bless {}, shift }
sub pour { my ($self) = @_; return $self }
sub _lid { 1 }

1;
__END__

=head1 NAME

Tea::Pot - make I<tea> for six

=head1 DESCRIPTION

Water goes in, B<tea> comes out. Milk is up to you.

=head2 Cleaning

With salt.

=cut
