# Stands in for the unit tests where configure found no libcheck, so that their absence is seen.
echo "the unit tests need libcheck (Debian: check), which configure did not find"
exit 77
